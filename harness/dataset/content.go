package dataset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
)

const pdf = "application/pdf"

// imageTypes are the types of images by the extensions of their addresses. The type of a file is told by its content instead.
var imageTypes = map[string]string{".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif", ".webp": "image/webp"}

var partKeys = []string{"text", "image", "document"}

// checkInput looks at the shape of an input whose templates are rendered.
func checkInput(n strict.Node, p *strict.Problems) {
	switch n.Kind() {
	case strict.String:
		if n.Text() == "" {
			p.Add(n.Pos(), "write what the user says", "the input is empty")
		}
		return
	case strict.Sequence:
	default:
		p.WrongType(n, "a string or a list of parts")
		return
	}
	if n.Len() == 0 {
		p.Add(n.Pos(), "write what the user says", "the input is empty")
	}
	for i, part := range n.Items() {
		at := p.At(i)
		if part.Kind() != strict.Mapping {
			at.WrongType(part, "a part: {text: ...}, {image: path} or {document: path}")
			continue
		}
		kinds := 0
		for key, v := range part.Fields() {
			if !slices.Contains(partKeys, key.Name) {
				if message, hint := later(key.Name, "audio"); message != "" {
					at.Add(key.Pos(), hint, "%s", message)
				} else {
					at.Unknown(key, partKeys)
				}
				kinds++ // said
				continue
			}
			kinds++
			if v.Kind() != strict.String {
				at.Key(key.Name).WrongType(v, "a string")
			} else if v.Text() == "" {
				at.Key(key.Name).Add(v.Pos(), "", "it is empty")
			}
		}
		if kinds != 1 {
			at.Add(part.Pos(), "write one of {text: ...}, {image: path}, {document: path}", "a part is one thing, got %d", kinds)
		}
	}
}

// content renders and reads what the user says. It returns the canonical text of what the model will see. at is where it stands.
func (d *Dataset) content(n strict.Node, from *layer, b *build, at *strict.Problems) ([]conversation.Content, []byte) {
	found := at.Len()
	if !from.data && hasTemplate(n) {
		n = n.MapStrings(func(n strict.Node) strict.Node {
			switch r := b.scope.text(n, at); r.Kind() {
			case strict.Int, strict.Float, strict.Bool:
				return r.WithText(r.Text())
			default:
				return r
			}
		})
	}
	if at.Len() == found {
		checkInput(n, at)
	}
	if at.Len() != found {
		return nil, nil
	}
	if n.Kind() == strict.String {
		return []conversation.Content{conversation.Text{Text: n.Text()}}, n.AppendCanonical(nil)
	}
	input := make([]conversation.Content, 0, n.Len())
	canonical := []byte{'['}
	for i, part := range n.Items() {
		for key, v := range part.Fields() {
			if i > 0 {
				canonical = append(canonical, ',')
			}
			canonical = append(append(append(canonical, '"'), key.Name...), '"', ':')
			if key.Name == "text" {
				input = append(input, conversation.Text{Text: v.Text()})
				canonical = v.AppendCanonical(canonical)
				continue
			}
			content, hash, ok := d.attachment(v, key.Name == "document", b.media, at.At(i).Key(key.Name))
			if !ok {
				continue
			}
			input = append(input, content)
			canonical = append(append(append(canonical, '"'), hash...), '"')
		}
	}
	return input, append(canonical, ']')
}

// attachment reads an image or a document. The hash tells its bytes, or its address, from others.
func (d *Dataset) attachment(n strict.Node, document bool, m *media, p *strict.Problems) (conversation.Content, string, bool) {
	text := n.Text()
	if scheme, _, ok := strings.Cut(text, "://"); ok || strings.HasPrefix(text, "data:") {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || scheme != "http" && scheme != "https" {
			p.Add(n.Pos(), "write a path, or an http or https address", "the address cannot be used")
			return nil, "", false
		}
		sum := sha256.Sum256([]byte(text))
		source := conversation.Source{Type: conversation.SourceURL, URL: text}
		if document {
			return conversation.Document{MediaType: pdf, Name: path.Base(u.Path), Source: source}, "url:" + hex.EncodeToString(sum[:]), true
		}
		// An address need not tell the type, and vendors that fetch it look for themselves.
		mediaType, ok := imageTypes[strings.ToLower(path.Ext(u.Path))]
		if !ok {
			mediaType = "image/jpeg"
		}
		return conversation.Image{MediaType: mediaType, Source: source}, "url:" + hex.EncodeToString(sum[:]), true
	}
	file, ok := d.resolveInside(n, p)
	if !ok {
		return nil, "", false
	}
	f := m.read(d, file)
	switch {
	case f.err != nil && errors.Is(f.err, errTooLong):
		p.Add(n.Pos(), "make it smaller or give its address", "%s is longer than %d MiB", d.show(file), MaxMedia>>20)
	case f.err != nil:
		p.AddError(unreadable(n.Pos(), "file "+d.show(file), f.err))
	case document && f.mediaType != pdf:
		p.Add(n.Pos(), "convert it", "%s is no PDF by its content", d.show(file))
	case !document && !strings.HasPrefix(f.mediaType, "image/"):
		p.Add(n.Pos(), "convert it", "%s is no JPEG, PNG, GIF or WebP image by its content", d.show(file))
	default:
		source := conversation.Source{Type: conversation.SourceBase64, Data: f.base64}
		if document {
			return conversation.Document{MediaType: pdf, Name: filepath.Base(file), Source: source}, f.hash, true
		}
		return conversation.Image{MediaType: f.mediaType, Source: source}, f.hash, true
	}
	return nil, "", false
}

// media is what the reading of one item leaves for the next: the file read last, since neighbouring items often show the same one, memory to build in, and of what the item was made.
type media struct {
	file       string
	last       attachmentFile
	scratch    text
	own        layer
	unrendered bool // a check of the last item has a template that is wrong
	build      build
	hashed     hashed
	checks     []from[Check]
	invariants []from[Invariant]
}

type attachmentFile struct {
	mediaType, base64, hash string
	err                     error
}

var (
	errTooLong = errors.New("too long")
	errNoFile  = errors.New("no regular file")
)

func (m *media) read(d *Dataset, file string) attachmentFile {
	if m.file != file {
		m.file, m.last = file, readMedia(d.Root, file)
	}
	return m.last
}

func readMedia(root, file string) attachmentFile {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return attachmentFile{err: err}
	}
	dir, err := os.OpenRoot(root) // follows no symbolic link out of the project
	if err != nil {
		return attachmentFile{err: err}
	}
	defer dir.Close()
	data, err := readBounded(dir.FS(), filepath.ToSlash(rel), MaxMedia)
	if err != nil {
		return attachmentFile{err: err}
	}
	sum := sha256.Sum256(data)
	return attachmentFile{mediaType: mediaType(data), base64: base64.StdEncoding.EncodeToString(data), hash: "sha256:" + hex.EncodeToString(sum[:])}
}

// mediaType tells the type by content; "" where it is none of those that a model takes.
func mediaType(data []byte) string {
	switch t := http.DetectContentType(data); t {
	case "image/jpeg", "image/png", "image/gif", "image/webp", pdf:
		return t
	}
	return ""
}

// readBounded reads a regular file of at most limit bytes. Other files, such as pipes, could block for ever.
func readBounded(from fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(from, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLong
	}
	return data, err
}
