package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// final marks an error that no repetition can mend.
type final struct{ error }

func (final) Final() bool { return true }

func (f final) Unwrap() error { return f.error }

// Final reports whether no repetition mends an error: it says so by a method Final() bool, a name is not to be found, or the other side cannot prove who it is.
func Final(err error) bool {
	var f interface{ Final() bool }
	if errors.As(err, &f) && f.Final() {
		return true
	}
	switch Cause(err) {
	case CauseTLS:
		return true
	case CauseDNS:
		var name *net.DNSError
		return errors.As(err, &name) && name.IsNotFound
	case CauseProxy:
		var dialled *net.OpError
		return !errors.As(err, &dialled) // it has refused
	}
	return false
}

// The causes for which no reply came that a user can do something about.
const (
	CauseDNS   = "dns"   // the host's name was not resolved
	CauseTLS   = "tls"   // the other side does not speak TLS, or its certificate is not trusted
	CauseProxy = "proxy" // the proxy was not reached, or did not let the request through
)

// Cause names why no reply came; "" where it is none of the causes above.
func Cause(err error) string {
	var (
		proxied *proxyError
		dialled *net.OpError
		name    *net.DNSError
		header  tls.RecordHeaderError
		alert   tls.AlertError
		checked *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		other   x509.HostnameError
	)
	switch {
	case errors.As(err, &proxied), errors.As(err, &dialled) && dialled.Op == "proxyconnect":
		return CauseProxy
	case errors.As(err, &name):
		return CauseDNS
	case errors.As(err, &checked), errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &other), errors.As(err, &header), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return CauseTLS
	}
	return ""
}

// proxyError is the refusal of a proxy to let a request through.
type proxyError struct{ status string }

func (e *proxyError) Error() string { return "the proxy answered " + strings.TrimSpace(e.status) }
