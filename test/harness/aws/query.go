// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/samber/lo"
)

// parameters are those of a request of the query protocol, such as Filter.1.Value.1.
type parameters url.Values

func (p parameters) get(name string) string { return url.Values(p).Get(name) }

// within returns the parameters of a structure.
func (p parameters) within(name string) parameters {
	return lo.MapEntries(lo.PickBy(p, func(key string, _ []string) bool { return strings.HasPrefix(key, name+".") }),
		func(key string, values []string) (string, []string) { return strings.TrimPrefix(key, name+"."), values })
}

// each returns the parameters of each structure of a list.
func (p parameters) each(name string) []parameters {
	var all []parameters
	for i := 1; ; i++ {
		item := p.within(fmt.Sprintf("%s.%d", name, i))
		if len(item) == 0 {
			return all
		}
		all = append(all, item)
	}
}

// list returns the values of a list.
func (p parameters) list(name string) []string {
	var all []string
	for i := 1; p.get(fmt.Sprintf("%s.%d", name, i)) != ""; i++ {
		all = append(all, p.get(fmt.Sprintf("%s.%d", name, i)))
	}
	return all
}

// tags returns the tags of a list of structures with a key and a value.
func (p parameters) tags(name string) map[string]string {
	return lo.SliceToMap(p.each(name), func(tag parameters) (string, string) { return tag.get("Key"), tag.get("Value") })
}

// element is a part of an answer.
type element struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	Children []element
}

// text returns an element with a value.
func text(name string, value any) element {
	return element{XMLName: xml.Name{Local: name}, Text: fmt.Sprint(value)}
}

// with returns an element with others.
func with(name string, children ...element) element {
	return element{XMLName: xml.Name{Local: name}, Children: children}
}

// items returns a list of EC2.
func items(name string, all ...[]element) element { return listOf(name, "item", all) }

// members returns a list of Auto Scaling.
func members(name string, all ...[]element) element { return listOf(name, "member", all) }

func listOf(name, item string, all [][]element) element {
	return with(name, lo.Map(all, func(children []element, _ int) element { return with(item, children...) })...)
}

// tagSet returns tags in an answer of EC2.
func tagSet(tags map[string]string) element {
	return items("tagSet", lo.MapToSlice(tags, func(key, value string) []element { return []element{text("key", key), text("value", value)} })...)
}

// failure is an error of AWS.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

// invalid returns an error for a request that can never succeed.
func invalid(code, format string, arguments ...any) *failure {
	return &failure{http.StatusBadRequest, code, fmt.Sprintf(format, arguments...)}
}
