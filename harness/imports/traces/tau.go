package traces

import (
	"strconv"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// tau reads a trajectory of tau-bench (Yao et al. 2024): the messages of one trial of a task, and in info.task what the task asks for. A trajectory that failed still has the task's own calls and outputs as its checks; without them those that it made.
func (im *importer) tau(n strict.Node) (conversation, bool) {
	c, ok := im.messages(n.Get("traj"), strict.Node{})
	if !ok {
		return c, false
	}
	c.answer = ""
	c.id = "task-" + n.Get("task_id").Text()
	if trial := n.Get("trial"); !trial.IsZero() {
		c.id += "-trial-" + trial.Text()
	}
	info := n.Get("info").Get("task")
	actions := info.Get("actions")
	c.tasked = actions.Kind() == strict.Sequence
	for _, a := range actions.Items() {
		if name := a.Get("name").Text(); name != "" {
			c.expected = append(c.expected, call{name: name, args: im.arguments(a.Get("kwargs"))})
		}
	}
	for _, o := range info.Get("outputs").Items() {
		if o.Text() != "" {
			c.outputs = append(c.outputs, o.Text())
		}
	}
	for _, key := range []string{"task_id", "trial"} {
		if v := n.Get(key); !v.IsZero() {
			c.metadata.Set(key, imports.Of(v))
		}
	}
	if reward, err := strconv.ParseFloat(n.Get("reward").Text(), 64); err == nil {
		c.metadata.Set("reward", imports.Of(n.Get("reward")))
		if reward >= 1 {
			c.tags = append(c.tags, "solved")
		} else {
			c.tags = append(c.tags, "failed")
		}
	}
	if instruction := info.Get("instruction"); instruction.Kind() == strict.String {
		c.metadata.Set("instruction", imports.Of(instruction))
	}
	return c, true
}
