package emulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// invokeBody reads a body of InvokeModel and writes the reply to it: the format is that of the model's maker.
type invokeBody struct {
	model string // is part of the model's id
	keys  []string
	// dimensions are those that may be asked for under the key dimensionsKey, the first where none are.
	dimensionsKey string
	dimensions    []int
	answer        func(root *value, texts []string, vectors [][]float32, used int) []byte
	texts         func(root *value) ([]string, string)
}

// invokeBodies are the makers of models that embed texts; the first that fits a model counts.
var invokeBodies = []invokeBody{
	{model: "amazon.titan-embed-text-v1", keys: []string{"inputText"}, dimensions: []int{1536}, texts: titanText, answer: titanFirstAnswer},
	{model: "amazon.titan-embed-text-v2", keys: []string{"inputText", "dimensions", "normalize", "embeddingTypes"}, dimensionsKey: "dimensions", dimensions: []int{1024, 512, 256}, texts: titanText, answer: titanAnswer},
	{model: "cohere.embed-v4", keys: []string{"texts", "input_type", "truncate", "embedding_types", "output_dimension", "max_tokens"}, dimensionsKey: "output_dimension", dimensions: []int{1536, 1024, 512, 256}, texts: cohereTexts, answer: cohereAnswer},
	{model: "cohere.embed-", keys: []string{"texts", "input_type", "truncate", "embedding_types"}, dimensions: []int{1024}, texts: cohereTexts, answer: cohereAnswer},
}

// embed answers a request for embeddings, without looking at the script but for the models that it allows.
func (b *bedrock) embed(w http.ResponseWriter, q *query, root *value) {
	refuse := func(message string) {
		b.refuse(w, b.plan.seed(q), &bedrockError{400, validationException, message})
	}
	at := slices.IndexFunc(invokeBodies, func(f invokeBody) bool { return strings.Contains(q.model, f.model) })
	if at < 0 || !b.plan.allows(q.model) {
		refuse("emulator_unsupported: InvokeModel is emulated for the models of Titan and Cohere that embed texts, got " + shorten(q.model, 64))
		return
	}
	f := invokeBodies[at]
	for _, key := range root.keys {
		if !slices.Contains(f.keys, key) {
			refuse("Malformed input request: #: extraneous key [" + shorten(key, 64) + "] is not permitted, please reformat your input and try again.")
			return
		}
	}
	texts, wrong := f.texts(root)
	if wrong != "" {
		refuse("Malformed input request: " + wrong + ", please reformat your input and try again.")
		return
	}
	dimensions := f.dimensions[0]
	if d := root.get(f.dimensionsKey); f.dimensionsKey != "" && d.given() {
		n, err := strconv.Atoi(d.text)
		if d.kind != '0' || err != nil || !slices.Contains(f.dimensions, n) {
			refuse("Malformed input request: #/" + f.dimensionsKey + ": " + shorten(d.text, 20) + " is not a valid enum value, please reformat your input and try again.")
			return
		}
		dimensions = n
	}
	used := 0
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		used += tokens(text)
		vectors[i] = embed(text, dimensions)
	}
	body := append(f.answer(root, texts, vectors, used), '\n')
	h := w.Header()
	b.common(h, b.plan.seed(q), q.attempt)
	h["X-Amzn-Bedrock-Input-Token-Count"] = []string{strconv.Itoa(used)}
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func titanText(root *value) (texts []string, wrong string) {
	input := root.get("inputText")
	if input.kind != '"' {
		return nil, "#: required key [inputText] not found"
	}
	if input.text == "" {
		return nil, "#/inputText: expected minLength: 1, actual: 0"
	}
	if types := root.get("embeddingTypes"); types.given() && (len(types.items) != 1 || types.items[0].text != "float") {
		return nil, "#/embeddingTypes: the emulator has vectors of floats alone"
	}
	return []string{input.text}, ""
}

func titanFirstAnswer(_ *value, _ []string, vectors [][]float32, used int) []byte {
	out := append(appendVector([]byte(`{"embedding":`), vectors[0]), `,"inputTextTokenCount":`...)
	return append(strconv.AppendInt(out, int64(used), 10), '}')
}

// titanAnswer is the same with the vector once more, as the second version has it.
func titanAnswer(root *value, texts []string, vectors [][]float32, used int) []byte {
	first := titanFirstAnswer(root, texts, vectors, used)
	out := append(first[:len(first)-1], `,"embeddingsByType":{"float":`...)
	return append(appendVector(out, vectors[0]), "}}"...)
}

// cohereInputs are what texts may be embedded for.
var cohereInputs = []string{"search_document", "search_query", "classification", "clustering"}

func cohereTexts(root *value) (texts []string, wrong string) {
	list := root.get("texts")
	switch {
	case list.kind != '[' || len(list.items) == 0:
		return nil, "#: required key [texts] not found"
	case len(list.items) > cohereEmbedTexts:
		return nil, "#/texts: expected maximum item count: " + strconv.Itoa(cohereEmbedTexts) + ", found: " + strconv.Itoa(len(list.items))
	case !slices.Contains(cohereInputs, root.get("input_type").text):
		return nil, "#/input_type: " + shorten(root.get("input_type").text, 40) + " is not a valid enum value"
	}
	for i := range list.items {
		if list.items[i].kind != '"' || list.items[i].text == "" {
			return nil, "#/texts/" + strconv.Itoa(i) + ": expected a text"
		}
		texts = append(texts, list.items[i].text)
	}
	if types := root.get("embedding_types"); types.given() && (len(types.items) != 1 || types.items[0].text != "float") {
		return nil, "#/embedding_types: the emulator has vectors of floats alone"
	}
	return texts, ""
}

func cohereAnswer(root *value, texts []string, vectors [][]float32, _ int) []byte {
	list := []byte{'['}
	said := []byte{'['}
	for i, vector := range vectors {
		if i > 0 {
			list, said = append(list, ','), append(said, ',')
		}
		list, said = appendVector(list, vector), appendQuoted(said, texts[i])
	}
	list, said = append(list, ']'), append(said, ']')
	kind := "embeddings_floats"
	if root.get("embedding_types").given() {
		kind = "embeddings_by_type"
		list = append(append([]byte(`{"float":`), list...), '}')
	}
	out := append([]byte(`{"embeddings":`), list...)
	out = append(out, `,"response_type":"`+kind+`","texts":`...)
	return append(append(out, said...), '}')
}
