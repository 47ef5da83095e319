// Package metrics counts what the server does, for Prometheus. All names begin with agentrun_.
//
// Labels hold only what is bounded: no bucket, key or path is one, so that the page neither grows with use nor tells who
// uses what.
package metrics

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"agentrun.dev/bucket"
	"agentrun.dev/control"
)

// Options configure the metrics; the zero value works.
type Options struct {
	Version string
	// Stored returns what the store takes on the disk, in bytes; nil leaves it out.
	Stored func(ctx context.Context) (payload, index uint64, err error)
	// Service returns the sandbox service's numbers; nil leaves them out.
	Service func() *control.Metrics
	// More are the counters of other servers of this process.
	More []prometheus.Collector
}

// Metrics is a registry of its own, and what is counted in it.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
	active   *prometheus.GaugeVec
}

// scrapeTimeout bounds what a scrape may cost.
const scrapeTimeout = 10 * time.Second

// New returns the metrics of a store.
func New(store *bucket.Store, o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentrun_http_requests_total",
			Help: "Requests answered, by protocol, method and status."}, []string{"protocol", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "agentrun_http_request_seconds",
			Help:    "Time from a request's header to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}}, []string{"protocol", "method"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentrun_http_received_bytes_total",
			Help: "Bytes of request bodies."}, []string{"protocol"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentrun_http_sent_bytes_total",
			Help: "Bytes of answers' bodies."}, []string{"protocol"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "agentrun_http_requests_in_flight",
			Help: "Requests being answered."}, []string{"protocol"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "agentrun_build_info", Help: "1, labelled with the program's version."}, []string{"version"})
	build.WithLabelValues(o.Version).Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.received, m.sent, m.active, build, &storeCollector{store: store, stored: o.Stored},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if o.Service != nil {
		m.registry.MustRegister(&serviceCollector{metrics: o.Service})
	}
	m.registry.MustRegister(o.More...)
	return m
}

// Handler serves the metrics' page.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 2 * scrapeTimeout})
}

// Wrap counts the requests that a handler answers, under the name of its protocol.
func (m *Metrics) Wrap(protocol string, h http.Handler) http.Handler {
	received, sent, active := m.received.WithLabelValues(protocol), m.sent.WithLabelValues(protocol), m.active.WithLabelValues(protocol)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		active.Inc()
		cw := &countingWriter{ResponseWriter: w}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &countingBody{ReadCloser: r.Body, n: received}
		}
		defer func() { // an aborted answer counts, too
			active.Dec()
			sent.Add(float64(cw.n))
			method := knownMethod(r.Method)
			status := cw.status
			if status == 0 {
				status = http.StatusOK
			}
			m.requests.WithLabelValues(protocol, method, strconv.Itoa(status)).Inc()
			m.seconds.WithLabelValues(protocol, method).Observe(time.Since(begun).Seconds())
		}()
		h.ServeHTTP(cw, r)
	})
}

// knownMethod keeps a client from making up labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return m
	}
	return "other"
}

// countingBody counts what is read of a request.
type countingBody struct {
	io.ReadCloser
	n prometheus.Counter
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(float64(n))
	return n, err
}

// countingWriter counts what is written of an answer. Unwrap lets http.ResponseController, and so hijacking and
// flushing, reach the writer below.
type countingWriter struct {
	http.ResponseWriter
	status int
	n      int64
}

func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countingWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// ReadFrom keeps the path by which a file reaches a socket without passing through memory.
func (w *countingWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.n += n
	return n, err
}

// Flush is for handlers that ask the writer itself.
func (w *countingWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// storeCollector asks the store at each scrape.
type storeCollector struct {
	store  *bucket.Store
	stored func(ctx context.Context) (payload, index uint64, err error)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// described are the store's metrics.
func described() map[string]*prometheus.Desc {
	return map[string]*prometheus.Desc{
		"buckets":      desc("agentrun_buckets", "Buckets, forks included."),
		"forks":        desc("agentrun_forks", "Buckets that are forks."),
		"objects":      desc("agentrun_objects", "Objects in all buckets; what forks share counts in each."),
		"bytes":        desc("agentrun_bytes", "Bytes of the objects in all buckets; what forks share counts in each."),
		"stored":       desc("agentrun_stored_bytes", "Bytes on the disk, by kind: payload, index.", "kind"),
		"open":         desc("agentrun_open_buckets", "Buckets that are held in memory."),
		"commits":      desc("agentrun_commits_total", "Commits made durable, each with one sync of the log."),
		"transactions": desc("agentrun_transactions_total", "Changes acknowledged; commits group them."),
		"folds":        desc("agentrun_folds_total", "Deltas folded into trees."),
		"collected":    desc("agentrun_collected_total", "Things collected since nothing referred to them, by kind: view, node, slot.", "kind"),
		"freed":        desc("agentrun_collected_bytes_total", "Bytes of payload given back."),
	}
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range described() {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What can't be told is left out.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	ds := described()
	send := func(kind prometheus.ValueType, name string, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(ds[name], kind, v, labels...)
	}
	var buckets, forks, objects, bytes float64
	err := c.store.List(ctx, func(i *bucket.Info) error {
		buckets++
		objects += float64(i.Objects)
		bytes += float64(i.Bytes)
		if i.Parent != nil {
			forks++
		}
		return nil
	})
	if err == nil {
		send(prometheus.GaugeValue, "buckets", buckets)
		send(prometheus.GaugeValue, "forks", forks)
		send(prometheus.GaugeValue, "objects", objects)
		send(prometheus.GaugeValue, "bytes", bytes)
	}
	m := c.store.Metrics()
	send(prometheus.GaugeValue, "open", float64(m.OpenBuckets))
	send(prometheus.CounterValue, "commits", float64(m.Commits))
	send(prometheus.CounterValue, "transactions", float64(m.Transactions))
	send(prometheus.CounterValue, "folds", float64(m.Folds))
	send(prometheus.CounterValue, "collected", float64(m.Collected.Views), "view")
	send(prometheus.CounterValue, "collected", float64(m.Collected.Nodes), "node")
	send(prometheus.CounterValue, "collected", float64(m.Collected.Slots), "slot")
	send(prometheus.CounterValue, "freed", float64(m.Collected.Bytes))
	if c.stored == nil {
		return
	}
	if payload, index, err := c.stored(ctx); err == nil {
		send(prometheus.GaugeValue, "stored", float64(payload), "payload")
		send(prometheus.GaugeValue, "stored", float64(index), "index")
	}
}
