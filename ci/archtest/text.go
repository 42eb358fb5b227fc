package archtest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// unchecked are the files that may hold what the rules about text look for.
var unchecked = []struct{ path, why string }{
	{"ci/archtest/text.go", "it holds the patterns"},
	{"ci/archtest/rules_test.go", "it holds texts that break the rules"},
	{"fixtures/cassettes", "recorded traffic has rules of its own, see ci/cassettetest"},
}

var (
	machinePath  = regexp.MustCompile(`(?:^|[\s"'` + "`" + `=(\[{,:])((?:/(?:home|Users|root|builds|go/pkg/mod|var/folders)/[\w.-]+|[A-Z]:\\Users\\\w+)[^\s"'` + "`" + `)\]},]*)`)
	registryHost = regexp.MustCompile(`(?i)\b(?:[\w-]+\.)*(?:proxy\.golang\.org|sum\.golang\.org|goproxy\.\w+|registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|pythonhosted\.org|crates\.io|deb\.debian\.org|security\.debian\.org|archive\.ubuntu\.com|docker\.io|ghcr\.io|quay\.io)\b`)
)

func checkMachinePaths(t *Tree) (looked int, found []Violation) {
	return checkLines(t, func(line string) (what string, ok bool) {
		m := machinePath.FindStringSubmatch(line)
		if m == nil {
			return "", false
		}
		return fmt.Sprintf("a path of one machine: %s", m[1]), true
	})
}

func checkMergeMarks(t *Tree) (looked int, found []Violation) {
	return checkLines(t, func(line string) (what string, ok bool) {
		return "a mark of an unfinished merge", strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ")
	})
}

func checkRegistryHosts(t *Tree) (looked int, found []Violation) {
	return checkLines(t, func(line string) (what string, ok bool) {
		host := registryHost.FindString(line)
		return fmt.Sprintf("a package registry's host: %s", host), host != ""
	})
}

// checkLines shows each line of every text file to bad.
func checkLines(t *Tree, bad func(line string) (what string, ok bool)) (looked int, found []Violation) {
	for _, name := range slices.Sorted(maps.Keys(t.Text)) {
		if slices.ContainsFunc(unchecked, func(u struct{ path, why string }) bool { return below(name, u.path) }) || path.Base(name) == "go.sum" {
			continue
		}
		looked++
		number := 0
		for line := range strings.Lines(t.Text[name]) {
			number++
			if what, ok := bad(line); ok {
				found = append(found, Violation{At: fmt.Sprintf("%s:%d", name, number), What: what})
			}
		}
	}
	return looked, found
}
