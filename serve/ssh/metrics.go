package ssh

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a server counts.
type metrics struct {
	accepted, failed, turnedAway, refused, sandboxes, kept, received, sent atomic.Int64
	connections, running                                                   atomic.Int64
	shells, execs, transfers                                               atomic.Int64
}

func (m *metrics) session(kind string) {
	switch kind {
	case "shell":
		m.shells.Add(1)
	case "exec":
		m.execs.Add(1)
	default:
		m.transfers.Add(1)
	}
}

var (
	descLogins      = prometheus.NewDesc("agentrun_ssh_logins_total", "Connections, by result: accepted, failed (in the handshake or the login), turned away (too many).", []string{"result"}, nil)
	descConnections = prometheus.NewDesc("agentrun_ssh_connections", "Connections that are logged in.", nil, nil)
	descSessions    = prometheus.NewDesc("agentrun_ssh_sessions_total", "Sessions begun, by kind: shell, exec, sftp.", []string{"kind"}, nil)
	descRunning     = prometheus.NewDesc("agentrun_ssh_sessions", "Sessions that run.", nil, nil)
	descSandboxes   = prometheus.NewDesc("agentrun_ssh_sandboxes_total", "Sandboxes made for connections.", nil, nil)
	descKept        = prometheus.NewDesc("agentrun_ssh_kept_total", "Forks that outlive their connection.", nil, nil)
	descRefused     = prometheus.NewDesc("agentrun_ssh_refused_total", "Channels and forwardings refused.", nil, nil)
	descReceived    = prometheus.NewDesc("agentrun_ssh_received_bytes_total", "Bytes received, as encrypted.", nil, nil)
	descSent        = prometheus.NewDesc("agentrun_ssh_sent_bytes_total", "Bytes sent, as encrypted.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLogins, descConnections, descSessions, descRunning, descSandboxes, descKept, descRefused, descReceived, descSent} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	m := &s.metrics
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v *atomic.Int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(v.Load()), labels...)
	}
	send(descLogins, prometheus.CounterValue, &m.accepted, "accepted")
	send(descLogins, prometheus.CounterValue, &m.failed, "failed")
	send(descLogins, prometheus.CounterValue, &m.turnedAway, "turned away")
	send(descConnections, prometheus.GaugeValue, &m.connections)
	send(descSessions, prometheus.CounterValue, &m.shells, "shell")
	send(descSessions, prometheus.CounterValue, &m.execs, "exec")
	send(descSessions, prometheus.CounterValue, &m.transfers, "sftp")
	send(descRunning, prometheus.GaugeValue, &m.running)
	send(descSandboxes, prometheus.CounterValue, &m.sandboxes)
	send(descKept, prometheus.CounterValue, &m.kept)
	send(descRefused, prometheus.CounterValue, &m.refused)
	send(descReceived, prometheus.CounterValue, &m.received)
	send(descSent, prometheus.CounterValue, &m.sent)
}
