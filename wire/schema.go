package wire

import (
	"embed"
	"strings"
)

//go:embed schema/*.json
var schemaFiles embed.FS

// schemaURN is what every schema's $id starts with.
const schemaURN = "urn:quotabroker:" + Version + ":"

// Schema is the JSON Schema (draft 2020-12) of one message. It is complete in
// itself: it refers to nothing outside.
//
// The schemas of requests are open, as the decoders are; those of replies are
// closed, so that a reply with a field too many is caught. What a schema cannot
// say, the decoders check alone: lengths in bytes (a schema counts characters),
// whole numbers written in plain digits, nesting. What the decoders forgive, the
// schemas do not: a null or an empty id for an absent field.
type Schema struct {
	Name string // "acquire.request"
	ID   string // the $id, "urn:quotabroker:v1:acquire.request"
	JSON []byte // the caller's own
}

// Schemas returns all schemas, ordered by name.
func Schemas() []Schema {
	files, err := schemaFiles.ReadDir("schema")
	if err != nil {
		panic("wire: the schemas are embedded: " + err.Error())
	}
	schemas := make([]Schema, 0, len(files))
	for _, f := range files {
		text, err := schemaFiles.ReadFile("schema/" + f.Name())
		if err != nil {
			panic("wire: the schemas are embedded: " + err.Error())
		}
		name := strings.TrimSuffix(f.Name(), ".json")
		schemas = append(schemas, Schema{Name: name, ID: schemaURN + name, JSON: text})
	}
	return schemas
}

// SchemaFor returns the $ids of a verb's request and of its normal reply, for
// the metadata of its endpoint; "" for a verb that has none. Any verb may answer
// with the schema named "error" instead.
func SchemaFor(verb Verb) (request, response string) {
	switch verb {
	case VerbAcquire, VerbSettle, VerbRenew, VerbCancel, VerbStatus:
		request = schemaURN + string(verb) + ".request"
	case VerbEstimate, VerbExplain:
		request = schemaURN + string(VerbAcquire) + ".request"
	default:
		return "", ""
	}
	return request, schemaURN + string(verb) + ".response"
}
