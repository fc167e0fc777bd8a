// Package testdata embeds the recorded data of this folder, so that the demo runs
// from the binary alone. It holds bytes only: internal/demodata reads them.
package testdata

import "embed"

// Files holds prompts/*.jsonl and traces/*.csv. Each folder's README says where
// they come from and under which licence.
//
//go:embed prompts/*.jsonl traces/*.csv
var Files embed.FS
