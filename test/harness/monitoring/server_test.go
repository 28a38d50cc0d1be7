// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

// answering returns a server whose API answers each request with the data for its path and what it asks for.
func answering(t *testing.T, data map[string]string) *Server {
	t.Helper()
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := strings.TrimPrefix(r.URL.Path, "/api/v1/") + " " + r.FormValue("query") + r.FormValue("match[]")
		answer, known := data[strings.TrimSpace(asked)]
		if !known {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprintf(w, `{"status": "error", "errorType": "execution", "error": "nobody answers %q"}`, asked)
			return
		}
		_, _ = fmt.Fprintf(w, `{"status": "success", "data": %s}`, answer)
	}))
	t.Cleanup(prometheus.Close)
	server, err := newServer(prometheus.URL)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// vector is the result of a query, with a value for each name.
func vector(values ...string) string {
	var samples []string
	for i := 0; i < len(values); i += 2 {
		samples = append(samples, fmt.Sprintf(`{"metric": {"alertname": %q}, "value": [1800000000, %q]}`, values[i], values[i+1]))
	}
	return fmt.Sprintf(`{"resultType": "vector", "result": [%s]}`, strings.Join(samples, ", "))
}

func TestAnswers(t *testing.T) {
	server := answering(t, map[string]string{
		"query number":   vector("a", "NaN", "b", "0"),
		"query none":     vector("a", "NaN"),
		"query infinite": vector("a", "+Inf"),
		"query empty":    vector(),
		"query matrix":   `{"resultType": "matrix", "result": []}`,
	})
	got, err := server.Answers(t.Context(), []string{"number", "none", "infinite", "empty", "matrix"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sets.New("number", "infinite"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := server.Answers(t.Context(), []string{"number", "broken"}); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got the error %v, want one with the query", err)
	}
}

func TestSelected(t *testing.T) {
	server := answering(t, map[string]string{"series some": `[{"__name__": "some"}]`, "series none": `[]`})
	got, err := server.Selected(t.Context(), []string{"some", "none"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sets.New("some"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := server.Selected(t.Context(), []string{"broken"}); err == nil {
		t.Error("got no error of a selector that is none")
	}
}

func TestActive(t *testing.T) {
	server := answering(t, map[string]string{
		"query count by (alertname) (ALERTS)":                     vector("Down", "1"),
		"query count by (alertname) (last_over_time(ALERTS[1h]))": vector("Down", "1", "Spare", "2"),
	})
	now, err := server.Active(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sets.New("Down"), now); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
	ever, err := server.EverActive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sets.New("Down", "Spare"), ever); diff != "" {
		t.Errorf("ever (-want +got):\n%s", diff)
	}
}

func TestFailed(t *testing.T) {
	rule := func(name, health, lastError string) string {
		return fmt.Sprintf(`{"type": "alerting", "name": %q, "health": %q, "lastError": %q}`, name, health, lastError)
	}
	rules := []string{rule("Good", "ok", ""), rule("New", "unknown", ""), rule("Bad", "err", "many-to-many matching")}
	got, err := answering(t, map[string]string{"rules": fmt.Sprintf(`{"groups": [{"name": "a", "rules": [%s]}]}`, strings.Join(rules, ", "))}).Failed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"New: unknown ", "Bad: err many-to-many matching"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
