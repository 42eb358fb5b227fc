package score

import (
	"regexp"
	"sync"
)

// expressions are those that were compiled last. The items of a dataset mostly share their checks, and each is compiled when the dataset is looked at and again when it runs.
var expressions = expressionCache{most: 256}

// expressionCache remembers compiled expressions, and forgets all of them when there are too many: a dataset whose items each have their own gains nothing and holds little. It is safe for concurrent use.
type expressionCache struct {
	most int

	mu       sync.RWMutex
	compiled map[string]*regexp.Regexp
}

func (c *expressionCache) compile(pattern string) (*regexp.Regexp, error) {
	c.mu.RLock()
	re := c.compiled[pattern]
	c.mu.RUnlock()
	if re != nil {
		return re, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled == nil || len(c.compiled) >= c.most {
		c.compiled = map[string]*regexp.Regexp{}
	}
	c.compiled[pattern] = re
	return re, nil
}
