package recordings

import (
	"bytes"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// hosts tells vendors of models by the end of the host; a host and a port that a server on the own machine listens to by default count too.
var hosts = []struct{ end, vendor string }{
	{"api.openai.com", "openai"},
	{"api.anthropic.com", "anthropic"},
	{"generativelanguage.googleapis.com", "gemini"},
	{"aiplatform.googleapis.com", "vertex"},
	{".openai.azure.com", "azure"},
	{".cognitiveservices.azure.com", "azure"},
	{".services.ai.azure.com", "azure"},
	{".models.ai.azure.com", "azure"},
	{"openrouter.ai", "openrouter"},
	{"ai-gateway.vercel.sh", "vercel"},
	{"huggingface.co", "huggingface"},
	{"api.mistral.ai", "mistral"},
	{"api.groq.com", "groq"},
	{"api.together.xyz", "together"},
	{"api.together.ai", "together"},
	{"api.cohere.com", "cohere"},
	{"api.cohere.ai", "cohere"},
	{"api.deepseek.com", "deepseek"},
	{"api.cerebras.ai", "cerebras"},
	{"api.x.ai", "xai"},
	{"api.voyageai.com", "voyage"},
	{"api.replicate.com", "replicate"},
	{"api.cloudflare.com", "cloudflare"},
	{"inference.heroku.com", "heroku"},
	{"ollama.com", "ollama"},
	{"localhost:11434", "ollama"},
	{"127.0.0.1:11434", "ollama"},
}

// owned are the vendors whose models have an owner in front of their name.
var owned = []string{"huggingface", "replicate"}

// Vendor names the vendor of models that an address belongs to; "" for any other address.
func Vendor(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	if bare, port, found := strings.Cut(host, ":"); found && (port == "443" || port == "80") {
		host = bare
	}
	for _, h := range hosts {
		if host == h.end || strings.HasSuffix(host, "."+strings.TrimPrefix(h.end, ".")) || strings.HasSuffix(host, "-"+h.end) {
			return h.vendor
		}
	}
	if strings.HasPrefix(host, "bedrock-runtime") && strings.HasSuffix(host, ".amazonaws.com") {
		return "bedrock"
	}
	return ""
}

// Model names the model that an exchange asks: what the address says behind /models/, /model/ or /deployments/, or the member model of the request; "" where neither says one, or the address belongs to no vendor.
func Model(x *Exchange) string {
	if Vendor(x.URL) == "" {
		return ""
	}
	if m := member(x.Request.Body, "model"); m != "" {
		return strings.TrimPrefix(m, "models/")
	}
	u, err := url.Parse(x.URL)
	if err != nil {
		return ""
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	for i := 0; i+1 < len(segments); i++ {
		if s := segments[i]; s == "models" || s == "model" || s == "deployments" {
			switch name, _, _ := strings.Cut(segments[i+1], ":"); {
			case s == "model": // Bedrock's have a colon in them
				return segments[i+1]
			case i+2 < len(segments) && slices.Contains(owned, Vendor(x.URL)):
				return name + "/" + segments[i+2]
			default:
				return name
			}
		}
	}
	return ""
}

// member returns a text of the outermost object of a JSON body, "" where there is none of at most 128 bytes.
func member(body []byte, name string) string {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return ""
	}
	if _, err := d.ReadToken(); err != nil {
		return ""
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if key.String() != name {
			if err := d.SkipValue(); err != nil && err != io.EOF {
				return ""
			}
			continue
		}
		if value, err := d.ReadToken(); err == nil && value.Kind() == '"' && len(value.String()) <= 128 {
			return value.String()
		}
		return ""
	}
	return ""
}
