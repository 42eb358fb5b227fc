package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/reports/escape"
)

//go:embed assets
var assets embed.FS

// The parts of the page in the order in which they stand. The scripts share one scope.
var (
	styles  = []string{"vendor/uplot/uPlot.min.css", "page.css"}
	scripts = []string{"vendor/uplot/uPlot.iife.min.js", "data.js", "diff.js", "charts.js", "item.js", "grid.js", "page.js"}
)

func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded, and every page is made of all of them
	}
	return string(data)
}

// Sheet is the page's own style sheet, for pages that look like it.
func Sheet() string { return asset("page.css") }

// policy is the content security policy of the page: nothing but the parts above, by their hashes. The icon is an empty data URL, which keeps browsers from asking for one.
var policy = sync.OnceValue(func() string {
	hashes := func(names []string) string {
		var b strings.Builder
		for _, name := range names {
			sum := sha256.Sum256([]byte(asset(name)))
			b.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
		}
		return b.String()
	}
	return "default-src 'none'; script-src" + hashes(scripts) + "; style-src" + hashes(styles) +
		"; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
})

var markup = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"line":  escape.Line, // untrusted text: what cannot be seen is shown as an escape
		"lines": func(s string) []string { return strings.Split(s, "\n") },
		"words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	}).Parse(asset("page.tmpl")))
})
