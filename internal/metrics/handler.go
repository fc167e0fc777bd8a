package metrics

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotabroker/internal/service"
)

// Handler serves a service's metrics and health, with a registry of its own:
//
//	GET /metrics   for Prometheus
//	GET /livez     200, or 503 and why only a new start will help
//	GET /readyz    200, or 503 and what keeps it from granting just now
func Handler(s *service.Service, version string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(s, version))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /livez", health(func(context.Context) error { return s.Live() }))
	mux.Handle("GET /readyz", health(s.Ready))
	return mux
}

// health answers a probe.
func health(check func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := check(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
