package config

import (
	"strconv"
	"strings"
)

// join returns the path of a key below a path: "pools.default" and "margin" give
// "pools.default.margin".
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// index returns the path of an item of a list: "limits[1]".
func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parent returns the path above a path, "" for the outermost.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// under reports whether path is at or below top.
func under(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (top == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
