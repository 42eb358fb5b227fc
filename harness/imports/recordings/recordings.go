// Package recordings reads the recordings of other programs and makes cassettes of them.
//
// Start with [Read], which finds out by the content what a file is, and go on with [Recording.Cassette]:
//
//	r, err := recordings.Read("old/search.yaml", data)
//	if err != nil {
//		return err
//	}
//	file, err := r.Cassette(header, detector, nil)
//
// Known are go-vcr (formats 1 and 2, which its releases 1 to 4 write), VCR.py (YAML and JSON) with the variant that keeps requests and responses in two lists, VCR of Ruby and of R, HAR and that of Polly, httprr, nock, and JSON files of one exchange; each may be compressed with gzip. A further format is a further row of the
// table of formats, with a reader that gives exchanges; what is done with bodies, secrets and headers is the same for all.
//
// Reading is of data only: no tag constructs anything, and size, depth, and what aliases and compression multiply are bounded. What a cassette cannot hold is named in [Recording.Report] with its place, never dropped silently.
package recordings

import (
	"bytes"
	"net/http"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/imports"
)

// The bounds of what is read.
const (
	MaxFile   = 32 << 20 // bytes of a file, before and after it is decompressed
	MaxBody   = 32 << 20 // bytes of a body after it is decoded
	maxBodies = 64 << 20 // bytes of all bodies of a file together
	maxDepth  = 100      // nested lists and mappings
	maxBegins = 1 << 19  // characters of a YAML file that may begin a value
	maxNodes  = 1 << 20  // values of a file, those that aliases repeat included
)

// Recording is what a file holds.
type Recording struct {
	File      string
	Format    string // a name of [Formats]
	Exchanges []Exchange
	// Report says what could not be kept and what was changed.
	Report imports.Report
}

// Exchange is one request with its response.
type Exchange struct {
	Pos         failure.Position
	At          time.Time     // when it began; zero where the recording does not say
	Duration    time.Duration // to the end of the response; 0 where the recording does not say
	Method, URL string
	Request     Message
	Code        int
	Status      string // code and reason, such as "200 OK"
	Response    Message
}

// Message is one side of an exchange.
type Message struct {
	Header http.Header // names in their canonical spelling
	// Body is decoded: whatever Content-Encoding said is undone.
	Body []byte
	// Encoding is what Content-Encoding said. Where it could not be undone the header has it still.
	Encoding string
	// Partial says that the body ends before its end.
	Partial bool
}

// format is one row of the table of formats.
type format struct {
	name string
	// is looks at the tree of a file; nil for a format that is none.
	is   func(*node) bool
	read func(*reader, *node) []Exchange
	// decoded says that the format keeps bodies decoded and the headers as they came.
	decoded bool
}

// formats are tried in order; the first that accepts a tree reads it.
var formats = []format{
	{"go-vcr 1", isGoVCR("1"), readGoVCR, false},
	{"go-vcr 2", isGoVCR("2"), readGoVCR, false},
	{"VCR.py", isVCRPy, readVCRPy, false},
	{"VCR.py requests and responses", isTwoLists, readTwoLists, false},
	{"Ruby VCR", isRubyVCR, readRubyVCR, false},
	{"Polly HAR", isPolly, readHAR, false},
	{"HAR", isHAR, readHAR, true},
	{"nock", isNock, readNock, false},
	{"one exchange", isOneExchange, readOneExchange, false},
	{httprrName, nil, nil, false},
}

// Formats lists the names of all formats.
func Formats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

// Read reads a recording. name is the file as messages show it. What stands in a file that is compressed counts its lines after decompression. Errors have the code [failure.Input] and say what the file lacks.
func Read(name string, data []byte) (*Recording, error) {
	r := &reader{Recording: Recording{File: name}}
	data = r.gunzip(data)
	if r.err == nil && len(bytes.TrimSpace(data)) == 0 {
		r.fail(nil, "the file is empty")
	}
	if r.err == nil && len(data) > MaxFile {
		r.fail(nil, "%d MiB are more than a recording may have (%d)", len(data)>>20, MaxFile>>20)
	}
	switch {
	case r.err != nil:
	case bytes.HasPrefix(data, []byte(httprrMagic)):
		r.Format = httprrName
		r.Exchanges = r.httprr(data)
	default:
		root := r.parse(data)
		if r.err == nil {
			r.detect(root)
		}
	}
	if r.err == nil && len(r.Exchanges) == 0 {
		r.fail(nil, "it holds no exchange")
	}
	for i := range r.Exchanges {
		if r.err == nil {
			r.finish(&r.Exchanges[i])
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return &r.Recording, nil
}

func (r *reader) detect(root *node) {
	for _, f := range formats {
		if f.is != nil && f.is(root) {
			r.Format, r.decoded = f.name, f.decoded
			r.Exchanges = f.read(r, root)
			return
		}
	}
	switch {
	case root.get("echoeval") != nil && root.get("interactions") != nil:
		r.fail(root, "it is a cassette of echoeval already")
		r.hint("echoeval cassette show FILE")
	case root.get("interactions") != nil && !root.get("version").empty():
		version := root.get("version")
		r.fail(version, "version %s of a recording with interactions; known are go-vcr 1 and 2 and VCR.py 1", short(version.text))
		r.hint("save it with a release of its program that writes one of these")
	case root.get("interactions") != nil:
		r.fail(root, "interactions without a version, which go-vcr writes first and VCR.py last: the file is cut short, or of another program")
		r.hint("take the file anew from where it comes from")
	default:
		r.fail(root, "no recording that is known")
		r.hint("known are those of go-vcr, VCR.py, VCR of Ruby and R, Polly, nock and httprr, HAR files, and JSON with a request and a response")
	}
}
