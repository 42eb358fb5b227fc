package promptfoo

import "strings"

// What becomes of an assertion's type.
type fate int

const (
	convertible fate = iota
	byCommand        // code of the user: a command check does it
	byRubric         // asks a model what a judge is asked
	byVectors        // compares vectors
	byJudge          // asks a model something else
	missing          // there is no such check
	byTools          // about the tools of the agent
)

// assertionTypes is the table of all types that promptfoo documents, without the prefix "not-".
var assertionTypes = map[string]fate{
	"assert-set": convertible, "contains": convertible, "contains-all": convertible, "contains-any": convertible, "contains-json": convertible, "cost": convertible, "equals": convertible,
	"icontains": convertible, "icontains-all": convertible, "icontains-any": convertible, "is-json": convertible, "latency": convertible, "regex": convertible, "starts-with": convertible, "word-count": convertible,

	"javascript": byCommand, "python": byCommand, "ruby": byCommand, "webhook": byCommand,

	"agent-rubric": byJudge, "answer-relevance": byRubric, "citation-faithfulness": byJudge, "classifier": byJudge, "context-faithfulness": byJudge, "context-recall": byJudge, "context-relevance": byJudge, "conversation-relevance": byJudge,
	"factuality": byRubric, "g-eval": byRubric, "human": byJudge, "llm-rubric": byRubric, "max-score": byJudge, "model-graded-closedqa": byRubric, "model-graded-factuality": byRubric, "moderation": byJudge, "noise-sensitivity": byJudge, "pi": byJudge,
	"search-rubric": byJudge, "research-rubric": byJudge, "select-best": byJudge, "similar": byVectors, "similar:cosine": byVectors, "similar:dot": byJudge, "similar:euclidean": byJudge, "trajectory:goal-success": byJudge, "video-rubric": byJudge,

	"bleu": missing, "character-count": missing, "contains-html": missing, "contains-sql": missing, "contains-xml": missing, "ends-with": missing, "finish-reason": missing, "gleu": missing, "guardrails": missing, "is-html": missing, "is-refusal": missing, "is-sql": missing,
	"is-xml": missing, "levenshtein": missing, "math-equivalent": missing, "meteor": missing, "perplexity": missing, "perplexity-score": missing, "rouge-l": missing, "rouge-n": missing, "rouge-s": missing,
	"tokens-used": missing, "trace-error-spans": missing, "trace-span-count": missing, "trace-span-duration": missing,

	"is-valid-function-call": byTools, "is-valid-openai-function-call": byTools, "is-valid-openai-tools-call": byTools, "skill-used": byTools, "tool-call-f1": byTools,
	"trajectory:step-count": byTools, "trajectory:tool-args-match": byTools, "trajectory:tool-sequence": byTools, "trajectory:tool-used": byTools,
}

// Keys that promptfoo knows, at each place.
var (
	fileKeys = []string{
		"$schema", "commandLineOptions", "defaultTest", "derivedMetrics", "description", "env", "evaluateOptions", "extensions", "metadata", "nunjucksFilters", "outputPath", "prompts", "providers", "redteam", "scenarios", "sharing", "tags", "targets", "tests",
		"tracing", "writeLatestResults",
	}
	testKeys = []string{
		"assert", "assertScoringFunction", "description", "metadata", "options", "prompts", "provider", "providerOutput", "providers", "threshold", "vars",
	}
	assertionKeys = []string{"assert", "config", "contextTransform", "metric", "provider", "rubricPrompt", "threshold", "transform", "type", "value", "weight"}
	optionKeys    = []string{
		"disableConversationVar", "disableDefaultAsserts", "disableVarExpansion", "factuality", "postprocess", "prefix", "provider", "repeat", "response_format", "responseFormat", "rubricPrompt", "runSerially", "storeOutputAs", "suffix", "transform", "transformVars",
	}
	providerKeys = []string{"config", "delay", "env", "id", "inputs", "label", "prompts", "transform"}
	promptKeys   = []string{"config", "display", "function", "id", "label", "raw", "template"}
)

// compatible are vendors whose API copies OpenAI's, with its address and the variable that holds the key.
var compatible = map[string]struct{ base, keyEnv string }{
	"anthropic":  {"https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"},
	"cerebras":   {"https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"},
	"deepseek":   {"https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
	"fireworks":  {"https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"},
	"google":     {"https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"},
	"groq":       {"https://api.groq.com/openai/v1", "GROQ_API_KEY"},
	"mistral":    {"https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
	"ollama":     {"http://127.0.0.1:11434/v1", ""},
	"openrouter": {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	"together":   {"https://api.together.xyz/v1", "TOGETHER_API_KEY"},
	"togetherai": {"https://api.together.xyz/v1", "TOGETHER_API_KEY"},
	"xai":        {"https://api.x.ai/v1", "XAI_API_KEY"},
}

// modes are words between vendor and model that say which of the vendor's interfaces is meant. The empty entry is no word at all.
var modes = map[string][]string{
	"openai": {"chat", "completion", "responses"}, "anthropic": {"messages", "completion"}, "ollama": {"chat", "completion"}, "mistral": {"chat"}, "google": {}, "azure": {"chat"},
}

// otherInterfaces are words after the vendor for what is no chat.
var otherInterfaces = []string{"assistant", "audio", "embedding", "embeddings", "image", "kb", "live", "moderation", "realtime", "speech", "transcription", "tts", "video"}

// codeFiles are the endings of files that hold code, which nobody runs here.
var codeFiles = []string{".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".sh", ".bash", ".pl", ".go", ".php"}

// mediaFiles are the endings of files that promptfoo puts into a variable as base64 or as extracted text.
var mediaFiles = []string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".svg", ".mp3", ".wav", ".mp4", ".webm", ".mov", ".pdf", ".ogg", ".m4a"}

func hasSuffix(name string, endings []string) bool {
	name = strings.ToLower(name)
	for _, end := range endings {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
