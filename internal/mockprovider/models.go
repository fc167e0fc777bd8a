package mockprovider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// writeJSON answers with one JSON value, of a stated length.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

func (s *Server) handleModels(w http.ResponseWriter, _ *http.Request) {
	data := make([]map[string]any, 0, len(s.opts.Models))
	for _, m := range s.opts.Models {
		data = append(data, modelBody(m))
	}
	_ = writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

func (s *Server) handleModel(w http.ResponseWriter, r *http.Request) {
	m := r.PathValue("model")
	if len(s.opts.Models) > 0 && !slices.Contains(s.opts.Models, m) {
		unknownModel(m).write(w)
		return
	}
	_ = writeJSON(w, http.StatusOK, modelBody(m))
}

func modelBody(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "mockprovider"}
}
