package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

var _ = Describe("the codecs of conversations and traces", func() {
	It("are the only ones in the project", func() {
		module, packages, err := LoadTypes(suite.Root())
		Expect(err).NotTo(HaveOccurred())
		looked, found := Codec(module, packages)
		AddReportEntry("codec", fmt.Sprintf("looked at %d arguments in %d packages", looked, len(packages)), ReportEntryVisibilityFailureOrVerbose)
		Expect(looked).To(BeNumerically(">", 0), "no call of an encoder was looked at")
		expectNone(found, CodecWhy)
	})
})

// sources type-checks small packages, each with the ones before it and the stand-ins for the encoders.
type sources struct {
	fset    *token.FileSet
	checked map[string]*types.Package
	typed   []Typed
}

func (s *sources) Import(path string) (*types.Package, error) {
	if pkg := s.checked[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

func (s *sources) add(path, source string) {
	GinkgoHelper()
	file, err := parser.ParseFile(s.fset, path+"/x.go", source, parser.SkipObjectResolution)
	Expect(err).NotTo(HaveOccurred())
	typed, pkg, err := check(path, s.fset, []*ast.File{file}, s)
	Expect(err).NotTo(HaveOccurred())
	s.typed = append(s.typed, typed)
	s.checked[path] = pkg
}

var _ = DescribeTable("what is given to an encoder", func(statement string, message string) {
	s := &sources{fset: token.NewFileSet(), checked: map[string]*types.Package{}}
	s.add("encoding/json", "package json\nfunc Marshal(v any) ([]byte, error) { return nil, nil }\nfunc Unmarshal(data []byte, v any) error { return nil }\nfunc Valid(data []byte) bool { return true }\ntype Encoder struct{}\nfunc (*Encoder) Encode(v any) error { return nil }")
	s.add("house/core/conversation", "package conversation\nimport \"encoding/json\"\ntype Message struct{ ID string }\ntype Content interface{ Kind() string }\ntype JSON string\nfunc (m Message) Text() string { b, _ := json.Marshal(m); return string(b) }")
	s.add("house/core/trace", "package trace\nimport \"house/core/conversation\"\ntype Event struct{ Message conversation.Message }")
	s.add("house/reports/x", "package x\nimport (\n\"encoding/json\"\n\"house/core/conversation\"\n\"house/core/trace\"\n)\ntype line struct{ Rows []map[string]*trace.Event }\ntype list struct{ Next *list; Name conversation.JSON; hidden conversation.Message }\ntype wrap struct{ conversation.Message }\nfunc f(m conversation.Message, c conversation.Content, e *json.Encoder, data []byte) {\n"+statement+"\n}\nvar _ = list{}.hidden\nvar _ trace.Event")
	looked, found := Codec("house", s.typed)
	Expect(looked).To(BeNumerically(">", 0))
	if message == "" {
		expectNone(found, CodecWhy)
		return
	}
	Expect(found).To(HaveLen(1))
	Expect(found[0].At).To(Equal("house/reports/x/x.go:11"))
	Expect(found[0].What).To(ContainSubstring(message))
},
	Entry("a message", "json.Marshal(m)", "json.Marshal is given a conversation.Message"),
	Entry("a pointer to a message", "json.Marshal(&m)", "conversation.Message"),
	Entry("a message read", "json.Unmarshal(data, &m)", "json.Unmarshal is given a conversation.Message"),
	Entry("a part of a message", "json.Marshal(c)", "conversation.Content"),
	Entry("an event deep in another type", "e.Encode(line{})", "json.Encode is given a trace.Event"),
	Entry("an embedded message", "json.Marshal([]wrap{})", "conversation.Message"),
	Entry("plain text of the model, and fields out of sight", "json.Marshal(list{})", ""),
	Entry("other values", "json.Marshal(map[string]int{})", ""),
	Entry("the package's own text", "json.Marshal(m.Text())", ""),
	Entry("another function of the encoder", "json.Valid(data); json.Marshal(1)", ""),
)
