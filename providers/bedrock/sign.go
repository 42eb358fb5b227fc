package bedrock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
)

// service is what the vendor's signatures call it, in the names of its actions too.
const service = "bedrock"

// Credentials are what requests are signed with.
type Credentials struct {
	// KeyID names the key; it is no secret, but no recording needs it.
	KeyID string
	// Key is the secret.
	Key transport.Secret
	// Session is the token of a temporary key, none for a lasting one.
	Session transport.Secret
}

// Sign signs each request for a region (Signature Version 4), in the place of whatever the provider put into the header. It stands below the recorder, which therefore sees neither key, nor signature, nor date; a refusal that repeats one of them has it replaced by a placeholder on the way up. The clock dates the signature.
func Sign(credentials Credentials, region string, c clock.Clock, next http.RoundTripper) http.RoundTripper {
	if region == "" {
		region = DefaultRegion
	}
	return newSigning(credentials, service, region, c, next)
}

func newSigning(credentials Credentials, service, region string, c clock.Clock, next http.RoundTripper) *signing {
	return &signing{
		service:     service,
		credentials: aws.Credentials{AccessKeyID: credentials.KeyID, SecretAccessKey: credentials.Key.Reveal(), SessionToken: credentials.Session.Reveal()},
		region:      region, clock: c, next: next, signer: v4.NewSigner(),
	}
}

type signing struct {
	credentials aws.Credentials
	service     string
	region      string
	clock       clock.Clock
	next        http.RoundTripper
	signer      *v4.Signer
}

// RoundTrip signs the request and sends it on.
func (s *signing) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the request to sign it: %w", err)
		}
	}
	out := new(http.Request)
	*out = *req
	out.Header = req.Header.Clone()
	out.Header.Del("Authorization")
	if req.Body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.ContentLength = int64(len(body))
	}
	sum := sha256.Sum256(body)
	if err := s.signer.SignHTTP(req.Context(), s.credentials, out, hex.EncodeToString(sum[:]), s.service, s.region, s.clock.Now().UTC()); err != nil {
		return nil, fmt.Errorf("signing the request: %w", err)
	}
	authorization := out.Header.Get("Authorization")
	resp, err := s.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	_, signature, _ := strings.Cut(authorization, "Signature=")
	transport.Hide(resp, transport.NewSecret(s.credentials.SecretAccessKey), transport.NewSecret(s.credentials.SessionToken), transport.NewSecret(s.credentials.AccessKeyID), transport.NewSecret(signature))
	return resp, nil
}
