// Package view is a local site over a folder of runs: what came of each dataset over time, and the report of each run. It reads and never writes, asks for nothing from elsewhere and has no script of its own.
//
// A folder of runs may hold anything: runs that go on, were killed or damaged, and what somebody else put there. Nothing in it is followed out of the folder or served as it stands: pages are made of what was read, and a run that cannot be read is named with the reason.
package view

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/localhost"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/html"
)

// Handler answers for the runs below a folder:
//
//	GET /               every dataset: trends and the newest runs
//	GET /?dataset=NAME  one dataset with all its runs
//	GET /run/ID         the html report of a run, made when it is asked for
//
// Requests that came by a name other than a loopback host's are refused, see [localhost.Guard]. The folder is read anew for each page. It is safe for concurrent use.
func Handler(runs string) http.Handler {
	s := &site{runs: runs}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.overview)
	mux.HandleFunc("GET /run/{id}", s.report)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusNotFound, "There is no such page.")
	})
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusForbidden, "This site answers only requests whose Host and Origin are localhost or a loopback address.")
	})
	return protect(localhost.Guard(mux, refuse))
}

type site struct {
	runs string
	// one makes reports one at a time: each may take 30 MB.
	one sync.Mutex
}

// protect sets the headers that every answer has: nobody frames it, keeps it or reads it from another site.
func protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control":                "no-store",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			w.Header().Set(name, value)
		}
		handler.ServeHTTP(w, r)
	})
}

func (s *site) overview(w http.ResponseWriter, r *http.Request) {
	h, err := read(s.runs)
	if err != nil {
		s.problem(w, http.StatusInternalServerError, failure.Render(err))
		return
	}
	if name := r.URL.Query().Get("dataset"); name != "" {
		d := h.find(name)
		if d == nil {
			s.problem(w, http.StatusNotFound, "There is no run of the dataset "+name+".")
			return
		}
		s.page(w, http.StatusOK, datasetPage(d))
		return
	}
	s.page(w, http.StatusOK, overviewPage(h))
}

// reportPolicy is added to the policy in the report's page: what only a header can say, and that it asks for nothing.
const reportPolicy = "connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *site) report(w http.ResponseWriter, r *http.Request) {
	s.one.Lock()
	defer s.one.Unlock()
	id := r.PathValue("id")
	dir, err := locate(s.runs, id)
	if err != nil {
		s.problem(w, http.StatusNotFound, failure.Render(err))
		return
	}
	var page bytes.Buffer
	if err := write(&page, dir); err != nil {
		s.problem(w, http.StatusInternalServerError, failure.Render(err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", reportPolicy)
	_, _ = w.Write(page.Bytes()) // who has gone away needs no answer
}

func write(page *bytes.Buffer, dir string) error {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	return html.Write(page, run, reports.Options{})
}
