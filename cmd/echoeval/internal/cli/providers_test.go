package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/abilities"
)

func TestProvidersDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "| provider | key | address |\n|---|---|---|\n")
	if !ok {
		t.Fatal("docs/providers.md has no table of keys and addresses")
	}
	rows := map[string]string{}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "| `") {
			break
		}
		rows[strings.Split(line, "`")[1]] = line
	}
	if len(rows) != len(vendors) {
		t.Errorf("docs/providers.md has %d providers, the table %d", len(rows), len(vendors))
	}
	for name, v := range vendors {
		for _, text := range []string{v.keyEnv, v.keyElse, v.base} {
			if !strings.Contains(rows[name], text) || rows[name] == "" {
				t.Errorf("docs/providers.md does not say %q of %s: %q", text, name, rows[name])
			}
		}
		if !v.scripted && len(abilities.Words(name)) == 0 {
			t.Errorf("abilities.Table has no row of %s", name)
		}
	}
}

func TestStricterLimits(t *testing.T) {
	for _, c := range []struct{ a, b, want transport.Limits }{
		{transport.Limits{}, transport.Limits{Concurrency: 8}, transport.Limits{Concurrency: 8}},
		{transport.Limits{Concurrency: 8}, transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 8, PerMinute: 20}},
		{transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 2}, transport.Limits{Concurrency: 2, PerMinute: 20}},
		{transport.Limits{Concurrency: 2, PerMinute: 60}, transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 2, PerMinute: 20}},
	} {
		if got := stricter(c.a, c.b); got != c.want {
			t.Errorf("stricter(%+v, %+v) = %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}
