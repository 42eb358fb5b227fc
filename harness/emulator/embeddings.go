package emulator

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// embeddingsPath is the one path of OpenAI's embeddings.
const embeddingsPath = "/v1/embeddings"

// The methods of a Gemini model that give embeddings.
const (
	geminiEmbed      = "embedContent"
	geminiEmbedBatch = "batchEmbedContents"
)

// maxDimensions bounds the vectors that are asked for; no vendor's model gives longer ones.
const maxDimensions = 4096

// How many texts one request may hold, as the vendors have it.
const (
	openAIEmbedTexts = 2048
	geminiEmbedTexts = 100
	cohereEmbedTexts = 96
)

// embed makes a vector of norm 1 of a text. It stands in for a model: the vector counts the text's words and, at a smaller weight, the runs of three letters in them, each at a place that its hash says. So equal texts have equal vectors, texts with many words in common have similar ones, and nothing is known of meaning.
// Counts are whole numbers and the norm is one square root, so that the digits are the same on every machine.
func embed(text string, dimensions int) []float32 {
	counts := make([]int, dimensions)
	add := func(feature string, weight int) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(feature)) // a hash takes everything
		counts[h.Sum64()%uint64(dimensions)] += weight
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) == 0 {
		add(text, 1) // signs alone
	}
	for _, word := range words {
		add(word, 3)
		letters := []rune(" " + word + " ")
		for i := range len(letters) - 2 {
			add("\x00"+string(letters[i:i+3]), 1)
		}
	}
	sum := 0
	for _, n := range counts {
		sum += n * n
	}
	norm := math.Sqrt(float64(sum))
	vector := make([]float32, dimensions)
	for i, n := range counts {
		vector[i] = float32(float64(n) / norm)
	}
	return vector
}

func appendVector(b []byte, vector []float32) []byte {
	b = append(b, '[')
	for i, f := range vector {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'f', -1, 32)
	}
	return append(b, ']')
}

// embeddings answers in the format of OpenAI's embeddings, without looking at the script but for the models that it allows. What stands before the body, and errors, are those of chat completions.
type embeddings struct{ *openAI }

func (o *embeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root, q, done := o.open(w, r, embeddingsPath)
	if done {
		return
	}
	texts, dimensions, asBase64, refused := readEmbeddings(root, q)
	if refused == nil && !o.plan.allows(q.model) {
		refused = &openAIError{404, "The model `" + q.model + "` does not exist or you do not have access to it.", invalidRequest, "", "model_not_found"}
	}
	if refused != nil {
		o.refuse(w, o.plan.seed(q), refused)
		return
	}
	used := 0
	b := []byte(`{"object":"list","data":[`)
	for i, text := range texts {
		used += tokens(text)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"object":"embedding","index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"embedding":`...)
		vector := embed(text, dimensions)
		if asBase64 {
			raw := make([]byte, 0, 4*len(vector))
			for _, f := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
			}
			b = appendQuoted(b, base64.StdEncoding.EncodeToString(raw))
		} else {
			b = appendVector(b, vector)
		}
		b = append(b, '}')
	}
	b = append(b, `],"model":`...)
	b = appendQuoted(b, q.model)
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(used), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(used), 10)
	b = append(b, "}}\n"...)
	h := w.Header()
	common(h, o.plan.seed(q), q.attempt)
	h["Server"] = o.server
	h["Openai-Processing-Ms"] = []string{"1"}
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// readEmbeddings reads a request for embeddings. Texts given as tokens are refused: the emulator has no vocabulary.
func readEmbeddings(root *value, q *query) (texts []string, dimensions int, asBase64 bool, refused *openAIError) {
	bad := func(param, message string) ([]string, int, bool, *openAIError) {
		return nil, 0, false, &openAIError{400, message, invalidRequest, param, ""}
	}
	if root.kind != '{' {
		return bad("", "the body is "+root.describe()+", want an object")
	}
	for _, key := range root.keys {
		switch key {
		case "input", "model", "encoding_format", "dimensions", "user":
		default:
			return bad(shorten(key, 64), "Unrecognized request argument supplied: "+shorten(key, 64))
		}
	}
	model := root.get("model")
	if model.kind != '"' || model.text == "" {
		return bad("model", "you must provide a model parameter")
	}
	q.model = model.text
	switch input := root.get("input"); {
	case input.kind == '"':
		texts = []string{input.text}
	case input.kind == '[' && len(input.items) > 0 && len(input.items) <= openAIEmbedTexts:
		for i := range input.items {
			if input.items[i].kind == '0' || input.items[i].kind == '[' {
				return nil, 0, false, &openAIError{400, "the emulator embeds texts and no tokens", invalidRequest, "input", "emulator_unsupported"}
			}
			if input.items[i].kind != '"' {
				return bad("input", "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
			}
			texts = append(texts, input.items[i].text)
		}
	default:
		return bad("input", "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
	}
	for _, text := range texts {
		if text == "" {
			return bad("input", "'$.input' is invalid: input cannot be an empty string.")
		}
	}
	dimensions = 1536
	if q.model == "text-embedding-3-large" {
		dimensions = 3072
	}
	if d := root.get("dimensions"); d.given() {
		n, err := strconv.Atoi(d.text)
		if d.kind != '0' || err != nil || n < 1 || n > maxDimensions {
			return bad("dimensions", "Invalid value for 'dimensions': want an integer from 1 to "+strconv.Itoa(maxDimensions)+".")
		}
		dimensions = n
	}
	switch f := root.get("encoding_format"); {
	case !f.given() || f.kind == '"' && f.text == "float":
	case f.kind == '"' && f.text == "base64":
		asBase64 = true
	default:
		return bad("encoding_format", "Invalid value for 'encoding_format': want 'float' or 'base64'.")
	}
	return texts, dimensions, asBase64, nil
}

// embeds says that the call asks for embeddings.
func (c *geminiCall) embeds() bool { return c.method == geminiEmbed || c.method == geminiEmbedBatch }

// embed answers a request for embeddings, without looking at the script but for the models that it allows.
func (g *gemini) embed(w http.ResponseWriter, c *geminiCall, root *value) {
	if !g.plan.allows(c.model) {
		g.refuse(w, c, &geminiError{status: 404, word: "NOT_FOUND", message: "models/" + c.model + " is not found for API version v1beta, or is not supported for " + c.method + ". Call ListModels to see the list of available models and their supported methods."})
		return
	}
	var b []byte
	if c.method == geminiEmbed {
		vector, e := c.vector(root, "")
		if e != nil {
			g.refuse(w, c, e)
			return
		}
		b = append(appendVector([]byte(`{"embedding":{"values":`), vector), "}}"...)
	} else {
		list := root.get("requests")
		if root.kind != '{' || list.kind != '[' || len(list.items) == 0 {
			g.refuse(w, c, embedFault("BatchEmbedContentsRequest.requests: want a list of requests"))
			return
		}
		if len(list.items) > geminiEmbedTexts {
			g.refuse(w, c, embedFault("BatchEmbedContentsRequest.requests: at most "+strconv.Itoa(geminiEmbedTexts)+" requests can be in one batch"))
			return
		}
		b = []byte(`{"embeddings":[`)
		for i := range list.items {
			vector, e := c.vector(&list.items[i], "requests["+strconv.Itoa(i)+"].")
			if e != nil {
				g.refuse(w, c, e)
				return
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendVector(append(b, `{"values":`...), vector), '}')
		}
		b = append(b, "]}"...)
	}
	b = append(b, '\n')
	h := w.Header()
	g.common(h)
	h["Server-Timing"] = []string{"gfet4t7; dur=1"}
	h["Content-Type"] = geminiJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = w.Write(b) // a client that is gone needs no answer
}

func embedFault(message string) *geminiError {
	return &geminiError{status: 400, word: invalidArgument, message: "* " + message}
}

// vector embeds what one EmbedContentRequest asks for; path stands before its fields in messages.
func (c *geminiCall) vector(req *value, path string) ([]float32, *geminiError) {
	if req.kind != '{' {
		return nil, embedFault(path + "want an object")
	}
	for _, key := range req.keys {
		switch key {
		case "model", "content", "taskType", "title", "outputDimensionality":
		default:
			return nil, embedFault("Unknown name \"" + shorten(key, 64) + "\" at '" + strings.TrimSuffix(path, ".") + "': Cannot find field.")
		}
	}
	model := req.get("model")
	if name := strings.TrimPrefix(model.text, "models/"); name != c.model && (path != "" || model.given()) {
		return nil, embedFault(path + "model: must match the model of the address, models/" + c.model)
	}
	var text []string
	parts := req.get("content").get("parts")
	for i := range parts.items {
		if t := parts.items[i].get("text"); t.kind == '"' && t.text != "" {
			text = append(text, t.text)
		} else if parts.items[i].kind != '{' || !t.given() {
			return nil, &geminiError{status: 400, word: invalidArgument, message: "the emulator embeds texts alone", details: []string{errorInfo("EMULATOR_UNSUPPORTED")}}
		}
	}
	if len(text) == 0 {
		return nil, embedFault(path + "content: contents is not specified")
	}
	dimensions := 3072
	if !strings.HasPrefix(c.model, "gemini-embedding") {
		dimensions = 768
	}
	if d := req.get("outputDimensionality"); d.given() {
		n, err := strconv.Atoi(d.text)
		if d.kind != '0' || err != nil || n < 1 || n > maxDimensions {
			return nil, embedFault(path + "output_dimensionality: want an integer from 1 to " + strconv.Itoa(maxDimensions))
		}
		dimensions = n
	}
	return embed(strings.Join(text, "\n"), dimensions), nil
}
