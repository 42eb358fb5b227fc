package dataset_test
import ("testing";"fmt";"os";"path/filepath";"strings";"runtime";"time"; "github.com/echoeval/echoeval/core/failure"; . "github.com/echoeval/echoeval/harness/dataset")
func TestX(t *testing.T){
 dir:=t.TempDir(); os.MkdirAll(filepath.Join(dir,"datasets/book"),0o755); os.WriteFile(filepath.Join(dir,"echoeval.yaml"),nil,0o644)
 os.WriteFile(filepath.Join(dir,"datasets/x.png"),[]byte("\x89PNG\r\n\x1a\n123"),0o644)
 for _,s:=range []string{`version: 1
name: clinic
agent: {task: {description: x}}
providers: [openai:gpt-4o-mini, {id: terse, provider: compat, model: llama3, base_url: "http://127.0.0.1:1/v1", temperature: 0, price: {input: 1, output: 2.5}}]
defaults:
  timeout: 30s
  vars: {clinic: North, n: 5}
  tool_context: {t: "x-{{clinic}}"}
  checks: [{contains: "{{expected}}"}, no_tool_calls]
  workspace: book
items:
- id: a
  input: "Hi {{clinic}} \\{{x}} {{n}}"
  expected: "112"
  checks: [{contains: x}, {not: {regex: "a"}, weight: 2}]
- id: b
  input: [{text: "{{n}}"}, {image: x.png}]
  expected: 5
  drop: [contains]
  script: [{call: {name: f, args: {n: "{{n}}"}}}, {text: done}]
- {id: A, input: x, vars: {clinic: null}}
- {id: a, input: "{{clinc}} é {{ clinc }} {{x"}
gates: {pass_rate: ">= 0.95", cost: null}
`,`version: 2
nme: X
agent: no.yaml
providers: [a, {provider: compat, api_key: sk-1, base_url: x}, "openai:a/b", "openai:a:b"]
defaults: {id: a, turns: 1, timeout: 5}
items: [{id: 1, input: 2, checks: {a: 1}}, {inptu: x}]
overrides: []
`, "version: 1\nname: x\nagent: {}\nitems: q.jsonl\n"}{
  f:=filepath.Join(dir,"datasets/d.yaml"); os.WriteFile(f,[]byte(s),0o644)
  d,err:=Open(f,Options{Dir:dir}); fmt.Print("== ",failure.Render(err)); if err!=nil{continue}
  fmt.Print(failure.Render(d.Validate(nil))); fmt.Printf("%d %s %+v\n",d.Count,d.Hash,d.Providers)
  for it,err:=range d.Items(){ if err!=nil{fmt.Print("  ",failure.Render(err));continue}
   fmt.Printf("%d %s %+v tc=%s %s %s\n",it.Index,it.ID,it.Input,it.ToolContext.JSON(),it.ItemHash,it.ChecksHash); for _,c:=range it.Checks{fmt.Printf("   %s %s %s %v %s\n",c.Name,c.Kind,c.Args.JSON(),c.Not,c.Pos)}; for _,c:=range it.Script{fmt.Printf("  step %+v\n",c)} }
 }
 var b strings.Builder
 for i:=range 100000 { fmt.Fprintf(&b, `{"id":"item-%06d","input":"What is the capital of France, and how many people live there?","expected":"Paris","checks":[{"contains":"Paris"},{"regex":"(?i)paris"}],"tags":["geo","easy"],"metadata":{"source":"handmade","level":3}}`+"\n",i)}
 os.WriteFile(filepath.Join(dir,"datasets/q.jsonl"),[]byte(b.String()),0o644)
 t0:=time.Now(); d,err:=Open(filepath.Join(dir,"datasets/d.yaml"),Options{Dir:dir}); if err!=nil{t.Fatal(err)}
 if err:=d.Validate(nil);err!=nil{t.Fatal(err)}; fmt.Println("validate",time.Since(t0)); t0=time.Now(); n:=0
 for _,err:=range d.Items(){ if err!=nil{t.Fatal(err)}; n++}; fmt.Println("items",n,time.Since(t0)); var ms runtime.MemStats; runtime.ReadMemStats(&ms); fmt.Println(ms.HeapSys>>20,ms.TotalAlloc>>20)
}
