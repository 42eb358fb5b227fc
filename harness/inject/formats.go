package inject

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// part says what a place in a reply holds.
type part int

const (
	partText part = iota // of the answer
	partName             // of the tool that is called
	partID               // of the call
	partArgs             // arguments, as a text or, in some places, as an object
)

// place is where a frame holds a piece of what the model says, or the whole of it. Both may occur in one reply: a format that streams pieces may repeat the whole in the end.
type place struct {
	part  part
	call  int // which call of the reply, by the format's own number
	whole bool
	in    map[string]any
	key   string
	frame *frame
}

func (p place) get() any { return p.in[p.key] }

func (p place) set(v any) { p.in[p.key], p.frame.changed = v, true }

// format is a vendor's wire format. A further one is a further row.
type format struct {
	name string
	// ends are the ends of a URL's path.
	ends []string
	// places tells what a frame holds. first is the number of calls in the frames before, for formats that do not number theirs.
	places func(f *frame, first int, add func(place))
	// objects says that whole arguments are an object and no text.
	objects bool
	// stop makes the reply end for a reason, in the frames that say so; it reports whether it found one.
	stop func(f *frame, why why) bool
	// refuse makes a text a refusal where the format has a place of its own for one; nil where the reason for the end says it.
	refuse func(p place)
	// repeat adds the call of a number once more, as one more call of the same reply.
	repeat func(w *wire, call int)
	// refusal is the body of an answer with a status.
	refusal func(status int) (header map[string]string, body any)
}

// why is a reason for which a reply ends.
type why int

const (
	byLength why = iota
	byRefusal
)

var formats = []format{chat, responses, messages, gemini, converse}

// formatOf returns the format of a request to a model, nil for what is none.
func formatOf(address string) *format {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(formats, func(f format) bool {
		return slices.ContainsFunc(f.ends, func(end string) bool { return strings.HasSuffix(u.Path, end) })
	})
	if i < 0 {
		return nil
	}
	return &formats[i]
}

// numeral is a whole number as it stands in JSON.
func numeral(n int) jsontext.Value { return jsontext.Value(strconv.Itoa(n)) }

// errorText is what vendors say of an injected fault.
const errorText = "injected by echoeval"

var chat = format{
	name: "OpenAI chat completions",
	ends: []string{"/chat/completions"},
	places: func(f *frame, _ int, add func(place)) {
		for _, choice := range each(f.value, "choices") {
			for _, name := range []string{"delta", "message"} {
				said, whole := object(choice, name), name == "message"
				if _, is := said["content"].(string); is {
					add(place{part: partText, whole: whole, in: said, key: "content"})
				}
				for i, call := range each(said, "tool_calls") {
					number := number(call, "index", i)
					if text(call, "id") != "" {
						add(place{part: partID, call: number, whole: true, in: call, key: "id"})
					}
					function := object(call, "function")
					if text(function, "name") != "" {
						add(place{part: partName, call: number, whole: true, in: function, key: "name"})
					}
					if _, is := function["arguments"].(string); is {
						add(place{part: partArgs, call: number, whole: whole, in: function, key: "arguments"})
					}
				}
			}
		}
	},
	stop: func(f *frame, why why) bool {
		found := false
		for _, choice := range each(f.value, "choices") {
			if text(choice, "finish_reason") != "" {
				choice["finish_reason"], f.changed, found = []string{"length", "content_filter"}[why], true, true
			}
		}
		return found
	},
	refuse: func(p place) {
		p.in["refusal"], p.in["content"], p.frame.changed = p.in["content"], nil, true
	},
	repeat: func(w *wire, call int) {
		highest, last := call, 0
		var again []*frame
		for i, f := range w.frames {
			for n, choice := range each(f.value, "choices") {
				if whole := object(choice, "message"); whole != nil {
					all, _ := whole["tool_calls"].([]any)
					if call < len(all) {
						whole["tool_calls"], f.changed = append(slices.Clone(all), copyValue(all[call])), true
					}
				}
				for k, c := range each(choice, "delta", "tool_calls") {
					highest, last = max(highest, number(c, "index", 0)), i
					if number(c, "index", 0) != call {
						continue
					}
					more := f.clone()
					delta := object(each(more.value, "choices")[n], "delta")
					delta["tool_calls"] = []any{each(delta, "tool_calls")[k]}
					again = append(again, more)
				}
			}
		}
		for _, f := range again {
			for _, choice := range each(f.value, "choices") {
				for _, c := range each(choice, "delta", "tool_calls") {
					c["index"] = numeral(highest + 1)
				}
			}
		}
		if again != nil {
			w.insert(last, again...)
		}
	},
	refusal: openAIRefusal,
}

func openAIRefusal(status int) (map[string]string, any) {
	kind := "server_error"
	if status == 429 {
		kind = "rate_limit_exceeded"
	}
	return nil, map[string]any{"error": map[string]any{"message": errorText, "type": kind, "param": nil, "code": nil}}
}

var responses = format{
	name: "OpenAI responses",
	ends: []string{"/responses"},
	places: func(f *frame, _ int, add func(place)) {
		m := f.object()
		item := func(item map[string]any, number int, whole bool) {
			for _, content := range each(item, "content") {
				if text(content, "type") == "output_text" && whole {
					add(place{part: partText, whole: true, in: content, key: "text"})
				}
			}
			if text(item, "type") != "function_call" {
				return
			}
			add(place{part: partID, call: number, whole: true, in: item, key: "call_id"})
			add(place{part: partName, call: number, whole: true, in: item, key: "name"})
			if whole {
				add(place{part: partArgs, call: number, whole: true, in: item, key: "arguments"})
			}
		}
		number := number(m, "output_index", 0)
		switch kind := text(m, "type"); kind {
		case "response.output_text.delta":
			add(place{part: partText, in: m, key: "delta"})
		case "response.output_text.done":
			add(place{part: partText, whole: true, in: m, key: "text"})
		case "response.content_part.done":
			if part := object(m, "part"); text(part, "type") == "output_text" {
				add(place{part: partText, whole: true, in: part, key: "text"})
			}
		case "response.function_call_arguments.delta":
			add(place{part: partArgs, call: number, in: m, key: "delta"})
		case "response.function_call_arguments.done":
			add(place{part: partArgs, call: number, whole: true, in: m, key: "arguments"})
			if text(m, "name") != "" {
				add(place{part: partName, call: number, whole: true, in: m, key: "name"})
			}
		case "response.output_item.added", "response.output_item.done":
			item(object(m, "item"), number, kind == "response.output_item.done")
		default:
			for _, whole := range []map[string]any{m, object(m, "response")} {
				for i, output := range each(whole, "output") {
					item(output, i, true)
				}
			}
		}
	},
	stop: func(f *frame, why why) bool {
		m := f.object()
		said := m
		if inner := object(m, "response"); inner != nil {
			said = inner
		}
		if text(said, "status") != "completed" || said["output"] == nil {
			return false
		}
		said["status"] = "incomplete"
		said["incomplete_details"] = map[string]any{"reason": []string{"max_output_tokens", "content_filter"}[why]}
		if text(m, "type") == "response.completed" {
			m["type"] = "response.incomplete"
			f.before = strings.Replace(f.before, "event: response.completed", "event: response.incomplete", 1)
		}
		f.changed = true
		return true
	},
	repeat: func(w *wire, call int) {
		highest, last := call, 0
		var again []*frame
		for i, f := range w.frames {
			m := f.object()
			for _, whole := range []map[string]any{m, object(m, "response")} {
				if all, _ := member(whole, "output").([]any); call < len(all) {
					more, _ := copyValue(all[call]).(map[string]any)
					another(more, "id")
					whole["output"], f.changed = append(slices.Clone(all), more), true
				}
			}
			if _, is := m["output_index"]; !is {
				continue
			}
			highest, last = max(highest, number(m, "output_index", 0)), i
			if number(m, "output_index", 0) == call {
				again = append(again, f.clone())
			}
		}
		for _, f := range again {
			m := f.object()
			m["output_index"] = numeral(highest + 1)
			another(m, "item_id")
			another(object(m, "item"), "id")
		}
		if again == nil {
			return
		}
		w.insert(last, again...)
		for i, f := range w.frames {
			if m := f.object(); m["sequence_number"] != nil {
				m["sequence_number"], f.changed = numeral(i), true
			}
		}
	},
	refusal: openAIRefusal,
}

// another makes the id of an item one of another item.
func another(m map[string]any, key string) {
	if id := text(m, key); id != "" {
		m[key] = id + "2"
	}
}

var messages = format{
	name:    "Anthropic messages",
	ends:    []string{"/v1/messages"},
	objects: true,
	places: func(f *frame, _ int, add func(place)) {
		m := f.object()
		block := func(b map[string]any, number int, whole bool) {
			switch {
			case text(b, "type") == "text" && whole:
				add(place{part: partText, whole: true, in: b, key: "text"})
			case text(b, "type") == "tool_use":
				add(place{part: partID, call: number, whole: true, in: b, key: "id"})
				add(place{part: partName, call: number, whole: true, in: b, key: "name"})
				if whole {
					add(place{part: partArgs, call: number, whole: true, in: b, key: "input"})
				}
			}
		}
		index := number(m, "index", 0)
		switch text(m, "type") {
		case "content_block_start":
			block(object(m, "content_block"), index, false)
		case "content_block_delta":
			switch delta := object(m, "delta"); text(delta, "type") {
			case "text_delta":
				add(place{part: partText, in: delta, key: "text"})
			case "input_json_delta":
				add(place{part: partArgs, call: index, in: delta, key: "partial_json"})
			}
		case "message":
			for i, b := range each(m, "content") {
				block(b, i, true)
			}
		}
	},
	stop: func(f *frame, why why) bool {
		m := f.object()
		if text(m, "type") == "message_delta" {
			m = object(m, "delta")
		}
		if text(m, "stop_reason") == "" {
			return false
		}
		m["stop_reason"], f.changed = []string{"max_tokens", "refusal"}[why], true
		return true
	},
	repeat: func(w *wire, call int) { repeatBlock(w, call, "index", "content") },
	refusal: func(status int) (map[string]string, any) {
		kind := map[int]string{429: "rate_limit_error", 529: "overloaded_error"}[status]
		if kind == "" {
			kind = "api_error"
		}
		return nil, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": errorText}}
	},
}

// repeatBlock repeats the block of a number. name is the key of its number in a stream, path leads to the list of blocks in a reply in one piece.
func repeatBlock(w *wire, call int, name string, path ...string) {
	highest, last := call, 0
	var again []*frame
	for i, f := range w.frames {
		m := f.object()
		if holder := object(m, path[:len(path)-1]...); holder != nil {
			key := path[len(path)-1]
			if all, _ := holder[key].([]any); call < len(all) {
				holder[key], f.changed = append(slices.Clone(all), copyValue(all[call])), true
			}
		}
		if _, is := m[name]; !is {
			continue
		}
		highest, last = max(highest, number(m, name, 0)), i
		if number(m, name, 0) == call {
			again = append(again, f.clone())
		}
	}
	for _, f := range again {
		f.object()[name] = numeral(highest + 1)
	}
	if again != nil {
		w.insert(last, again...)
	}
}

var gemini = format{
	name:    "Gemini",
	ends:    []string{":generateContent", ":streamGenerateContent"},
	objects: true,
	places: func(f *frame, first int, add func(place)) {
		for _, candidate := range each(f.value, "candidates") {
			for _, p := range each(candidate, "content", "parts") {
				if _, is := p["text"].(string); is && p["thought"] != true {
					add(place{part: partText, in: p, key: "text"})
				}
				call := object(p, "functionCall")
				if call == nil {
					continue
				}
				if text(call, "id") != "" {
					add(place{part: partID, call: first, whole: true, in: call, key: "id"})
				}
				add(place{part: partName, call: first, whole: true, in: call, key: "name"})
				add(place{part: partArgs, call: first, whole: true, in: call, key: "args"})
				first++
			}
		}
	},
	stop: func(f *frame, why why) bool {
		found := false
		for _, candidate := range each(f.value, "candidates") {
			if text(candidate, "finishReason") != "" {
				candidate["finishReason"], f.changed, found = []string{"MAX_TOKENS", "SAFETY"}[why], true, true
			}
		}
		return found
	},
	repeat: func(w *wire, call int) {
		seen := 0
		for _, f := range w.frames {
			for _, candidate := range each(f.value, "candidates") {
				content := object(candidate, "content")
				for _, p := range each(content, "parts") {
					function := object(p, "functionCall")
					if function == nil {
						continue
					}
					if seen == call {
						if text(function, "id") == "" {
							function["id"] = "call-1" // the vendor numbers calls on newer models alone
						}
						all, _ := content["parts"].([]any)
						content["parts"], f.changed = append(slices.Clone(all), copyValue(p)), true
						return
					}
					seen++
				}
			}
		}
	},
	refusal: func(status int) (map[string]string, any) {
		word := map[int]string{429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}[status]
		if word == "" {
			word = "UNAVAILABLE"
		}
		return nil, map[string]any{"error": map[string]any{"code": numeral(status), "message": errorText, "status": word}}
	},
}

var converse = format{
	name:    "Bedrock Converse",
	ends:    []string{"/converse", "/converse-stream"},
	objects: true,
	places: func(f *frame, _ int, add func(place)) {
		m := f.object()
		call := func(use map[string]any, number int, whole bool) {
			add(place{part: partID, call: number, whole: true, in: use, key: "toolUseId"})
			add(place{part: partName, call: number, whole: true, in: use, key: "name"})
			if whole {
				add(place{part: partArgs, call: number, whole: true, in: use, key: "input"})
			}
		}
		index := number(m, "contentBlockIndex", 0)
		if use := object(m, "start", "toolUse"); use != nil {
			call(use, index, false)
		}
		if delta := object(m, "delta"); delta != nil {
			if _, is := delta["text"].(string); is {
				add(place{part: partText, in: delta, key: "text"})
			}
			if use := object(delta, "toolUse"); use != nil {
				add(place{part: partArgs, call: index, in: use, key: "input"})
			}
		}
		for i, b := range each(m, "output", "message", "content") {
			if _, is := b["text"].(string); is {
				add(place{part: partText, whole: true, in: b, key: "text"})
			}
			if use := object(b, "toolUse"); use != nil {
				call(use, i, true)
			}
		}
	},
	stop: func(f *frame, why why) bool {
		m := f.object()
		if text(m, "stopReason") == "" {
			return false
		}
		m["stopReason"], f.changed = []string{"max_tokens", "content_filtered"}[why], true
		return true
	},
	repeat: func(w *wire, call int) { repeatBlock(w, call, "contentBlockIndex", "output", "message", "content") },
	refusal: func(status int) (map[string]string, any) {
		kind := map[int]string{429: "ThrottlingException", 500: "InternalServerException"}[status]
		if kind == "" {
			kind = "ServiceUnavailableException"
		}
		return map[string]string{"X-Amzn-Errortype": kind}, map[string]any{"message": errorText}
	},
}

// reply is a recorded reply, read for what can go wrong in it.
type reply struct {
	*format
	*wire
	places []place
}

// read finds what a reply holds. It is done anew after frames were added.
func (r *reply) read() {
	r.places = nil
	calls := 0
	for _, f := range r.frames {
		r.format.places(f, calls, func(p place) {
			p.frame = f
			r.places = append(r.places, p)
			if p.part == partName {
				calls = max(calls, p.call+1)
			}
		})
	}
}

// of yields the places of a part; of calls those of one.
func (r *reply) of(kind part, call int) []place {
	var out []place
	for _, p := range r.places {
		if p.part == kind && (kind == partText || p.call == call) {
			out = append(out, p)
		}
	}
	return out
}

// calls lists the numbers of the calls in order.
func (r *reply) calls() []int {
	var out []int
	for _, p := range r.places {
		if p.part == partName && !slices.Contains(out, p.call) {
			out = append(out, p.call)
		}
	}
	slices.Sort(out)
	return out
}

// first returns the text at the first place of a part of a call.
func (r *reply) first(kind part, call int) string {
	for _, p := range r.of(kind, call) {
		if s, _ := p.get().(string); s != "" {
			return s
		}
	}
	return ""
}

// said joins the pieces of a part; where there are none the first whole that is there says it.
func (r *reply) said(kind part, call int) string {
	var pieces strings.Builder
	whole, streamed := "", false
	for _, p := range r.of(kind, call) {
		v := p.get()
		s, is := v.(string)
		if !is && v != nil {
			s = writeValue(v)
		}
		switch {
		case !p.whole:
			streamed = true
			pieces.WriteString(s)
		case whole == "":
			whole = s
		}
	}
	if streamed {
		return pieces.String()
	}
	return whole
}

// say puts another text in the place of a part: the first piece holds it, the others nothing, and wholes repeat it.
func (r *reply) say(kind part, call int, said string) {
	began := false
	for _, p := range r.of(kind, call) {
		switch {
		case p.whole || !began:
			p.set(said)
			began = began || !p.whole
		default:
			p.set("")
		}
	}
}

// end makes the reply end for a reason; false where it does not say why it ends.
func (r *reply) end(why why) bool {
	found := false
	for _, f := range r.frames {
		found = r.format.stop(f, why) || found
	}
	return found
}
