// Package contenttest passes every kind of content through the converter of every provider: each reaches the request, or is left out with a warning that has a name.
package contenttest
