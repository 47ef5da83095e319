package rpc

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"agentrun.dev/errs"
)

// ServiceName is the name in the service's own certificate: nodes take orders from nobody else.
const ServiceName = "agentrun-service"

// How long certificates last.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	memberLife    = 2 * 365 * 24 * time.Hour
)

// Authority is what makes the certificates of one service and its nodes, or, without its key, only knows them.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	pem  []byte
}

// NewAuthority makes one, and returns it with its certificate and key in PEM, to be kept secret.
func NewAuthority() (*Authority, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errs.New(errs.Other, "make authority", "", err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "agentrun nodes"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, errs.New(errs.Other, "make authority", "", err)
	}
	text, err := encode(der, key)
	if err != nil {
		return nil, nil, err
	}
	a, err := ReadAuthority(text)
	return a, text, err
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return n
}

func encode(der []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errs.New(errs.Other, "write key", "", err)
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k})...), nil
}

// ReadAuthority reads what NewAuthority returned.
func ReadAuthority(text []byte) (*Authority, error) {
	bad := errs.Msg(errs.Invalid, "read authority", "", "want a certificate of an authority and its key, in PEM")
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, bad
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, bad
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || !cert.IsCA {
		return nil, bad
	}
	a := &Authority{cert: cert, key: key, pool: x509.NewCertPool(), pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})}
	a.pool.AddCert(cert)
	return a, nil
}

// Bundle makes a certificate for a name, and returns all that its holder needs, in PEM, to be kept secret: key, certificate, and
// that of the authority.
func (a *Authority) Bundle(name string) ([]byte, error) {
	if a.key == nil {
		return nil, errs.Msg(errs.Denied, "make certificate", name, "the authority's key isn't here")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errs.New(errs.Other, "make certificate", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(memberLife), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, errs.New(errs.Other, "make certificate", name, err)
	}
	out, err := encode(der, key)
	return append(out, a.pem...), err
}

// ReadBundle reads what Bundle returned, and whom it names.
func ReadBundle(text []byte) (cert tls.Certificate, authority *Authority, name string, err error) {
	bad := func(why string) (tls.Certificate, *Authority, string, error) {
		return tls.Certificate{}, nil, "", errs.Msg(errs.Invalid, "read certificates", "", why).WithHint("'agentrun nodes certificate NAME' makes them")
	}
	if cert, err = tls.X509KeyPair(text, text); err != nil {
		return bad("want a key, its certificate and the authority's, in PEM")
	}
	authority = &Authority{pool: x509.NewCertPool()}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || bytes.Equal(block.Bytes, cert.Certificate[0]) {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return bad(err.Error())
		}
		if c.IsCA {
			authority.cert = c
			authority.pool.AddCert(c)
		}
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil || authority.cert == nil || len(leaf.DNSNames) == 0 {
		return bad("the authority's certificate is missing")
	}
	return cert, authority, leaf.DNSNames[0], nil
}
