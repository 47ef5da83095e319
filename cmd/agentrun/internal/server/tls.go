package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"agentrun.dev/errs"
)

// Validity of a self-signed certificate, and how long before its end it is replaced.
const (
	certValid = 397 * 24 * time.Hour
	certRenew = 30 * 24 * time.Hour
)

// givenCertificate loads the certificate that the caller has; nil if there is none.
func (c *Config) givenCertificate() (*tls.Certificate, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, errs.New(errs.Invalid, "load certificate", c.TLSCert, err)
	}
	return &cert, nil
}

// ownCertificate returns the self-signed certificate of the data directory, and its file, for clients to trust.
func (c *Config) ownCertificate() (*tls.Certificate, string, error) {
	certFile, keyFile := filepath.Join(c.Data, "tls", "cert.pem"), filepath.Join(c.Data, "tls", "key.pem")
	hosts := c.hosts()
	if cert, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && covers(&cert, hosts) {
		return &cert, certFile, nil
	}
	cert, err := selfSign(hosts, certFile, keyFile)
	if err != nil {
		return nil, "", errs.New(errs.Other, "make certificate", certFile, err)
	}
	return cert, certFile, nil
}

// hosts returns the names and addresses under which a self-signed server may be reached.
func (c *Config) hosts() []string {
	hosts := []string{"localhost", "*.localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, d := range c.Domains {
		hosts = append(hosts, d, "*."+d)
	}
	for _, addr := range []string{c.Listen, c.S3Listen} {
		host, _, _ := net.SplitHostPort(addr)
		ip := net.ParseIP(host)
		if host != "" && (ip == nil || !ip.IsUnspecified()) {
			hosts = append(hosts, host)
			continue
		}
		addrs, err := net.InterfaceAddrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
				hosts = append(hosts, n.IP.String())
			}
		}
	}
	return hosts
}

func covers(cert *tls.Certificate, hosts []string) bool {
	leaf := cert.Leaf
	if leaf == nil || time.Until(leaf.NotAfter) < certRenew {
		return false
	}
	for _, h := range hosts {
		if h[0] == '*' {
			h = "x" + h[1:]
		}
		if leaf.VerifyHostname(h) != nil {
			return false
		}
	}
	return true
}

// selfSign makes a certificate and keeps it, so that clients which trust it do so after a restart too.
func selfSign(hosts []string, certFile, keyFile string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "AgentRun, self-signed"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certValid), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o700); err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(certFile, certPEM, 0o644); err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	return &cert, err
}
