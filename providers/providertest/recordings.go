package providertest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"

	"github.com/echoeval/echoeval/ci/suite"
)

// Recording is one recorded exchange of somebody else with a vendor.
type Recording struct {
	Format, File string
	URL          string
	Request      []byte
	Status       int
	Header       http.Header
	Body         []byte // as it came, without Content-Encoding
	SSE          bool
}

// Recordings reads the exchanges of all recordings of a format, a folder of YAML files in the shared data, that were posted to a path with the given end.
func Recordings(format, path string) []Recording {
	ginkgo.GinkgoHelper()
	root := suite.SharedData("cassettes", format)
	var found []Recording
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list := yamlNode(doc.Content[0], "interactions")
		if list.Kind == 0 {
			list = yamlNode(doc.Content[0], "http_interactions")
		}
		for _, n := range list.Content {
			if r, ok := exchange(n, path); ok {
				r.Format, r.File = format, filepath.Base(name)
				found = append(found, r)
			}
		}
		return nil
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return found
}

// exchange reads one interaction, and reports false where it is none with the path.
func exchange(n *yaml.Node, path string) (Recording, bool) {
	request, response := yamlNode(n, "request"), yamlNode(n, "response")
	r := Recording{Header: http.Header{}, URL: yamlNode(request, "url").Value + yamlNode(request, "uri").Value}
	u, err := url.Parse(r.URL)
	if err != nil || !strings.EqualFold(yamlNode(request, "method").Value, "post") || !strings.HasSuffix(u.Path, path) {
		return r, false
	}
	for _, place := range [][]string{{"code"}, {"status", "code"}} {
		if code, err := strconv.Atoi(yamlNode(response, place...).Value); err == nil {
			r.Status = code
		}
	}
	headers := yamlNode(response, "headers")
	for i := 0; i+1 < len(headers.Content); i += 2 {
		for _, v := range headers.Content[i+1].Content {
			r.Header.Add(headers.Content[i].Value, v.Value)
		}
	}
	r.Request, r.Body = yamlBody(request), yamlBody(response)
	r.Header.Del("Content-Encoding")
	r.SSE = !bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("{"))
	return r, true
}

// yamlNode finds a key in a YAML mapping; the zero value where it is absent.
func yamlNode(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		next := &yaml.Node{}
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		n = next
	}
	return n
}

// yamlBody reads the body of a request or a response: text, bytes in base64, the one or the other below a key, or JSON that the recorder kept parsed.
func yamlBody(n *yaml.Node) []byte {
	if parsed := yamlNode(n, "parsed_body"); parsed.Kind != 0 {
		var v any
		gomega.Expect(parsed.Decode(&v)).To(gomega.Succeed())
		data, err := json.Marshal(v, json.Deterministic(true)) // in one order, whatever it was on the wire
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return data
	}
	body := yamlNode(n, "body")
	if body.Kind == yaml.MappingNode {
		body = yamlNode(body, "string")
	}
	data := []byte(body.Value)
	if strings.HasSuffix(body.Tag, "binary") {
		var err error
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body.Value), ""))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		data, err = io.ReadAll(z)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
	}
	return data
}
