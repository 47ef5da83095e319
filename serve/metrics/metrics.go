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
)

// Options configure the metrics; the zero value works.
type Options struct {
	Version string
	// Stored returns what the store takes on the disk, in bytes; nil leaves it out.
	Stored func(ctx context.Context) (payload, index uint64, err error)
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

// The store's metrics.
func (c *storeCollector) descs() (buckets, forks, objects, bytes, stored *prometheus.Desc) {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return d("agentrun_buckets", "Buckets, forks included."), d("agentrun_forks", "Buckets that are forks."),
		d("agentrun_objects", "Objects in all buckets; what forks share counts in each."),
		d("agentrun_bytes", "Bytes of the objects in all buckets; what forks share counts in each."),
		d("agentrun_stored_bytes", "Bytes on the disk, by kind: payload, index.", "kind")
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	buckets, forks, objects, bytes, stored := c.descs()
	for _, d := range []*prometheus.Desc{buckets, forks, objects, bytes, stored} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What can't be told is left out.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	buckets, forks, objects, bytes, stored := c.descs()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var nb, nf, no, by float64
	err := c.store.List(ctx, func(i *bucket.Info) error {
		nb++
		no += float64(i.Objects)
		by += float64(i.Bytes)
		if i.Parent != nil {
			nf++
		}
		return nil
	})
	if err == nil {
		gauge(buckets, nb)
		gauge(forks, nf)
		gauge(objects, no)
		gauge(bytes, by)
	}
	if c.stored == nil {
		return
	}
	if payload, index, err := c.stored(ctx); err == nil {
		gauge(stored, float64(payload), "payload")
		gauge(stored, float64(index), "index")
	}
}
