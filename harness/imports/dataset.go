package imports

// mostInline is how many bytes a dataset may have with its items in it; with more they have a file of their own, which is read item by item.
const mostInline = 2 << 20

// Dataset writes a dataset: all keys but items, then the items, a list. The file, which comes first, is called by the dataset's name; where the items are many they stand in a file beside it.
func Dataset(name string, root, items Value, head string) []File {
	whole := root
	whole.fields = append(append([]Field(nil), root.fields...), Field{Key: "items", Value: items.Block(), Comments: root.comments})
	whole.comments = nil
	data := whole.Block().YAML(head)
	if len(data) <= mostInline {
		return []File{{Path: name + ".yaml", Data: data}}
	}
	beside := name + ".items.yaml"
	root.Set("items", Text(beside))
	return []File{{Path: name + ".yaml", Data: root.Block().YAML(head)}, {Path: beside, Data: items.Block().YAML(head)}}
}
