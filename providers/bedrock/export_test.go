package bedrock

import (
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
)

// SignFor signs for another service, for the published examples of signatures.
func SignFor(credentials Credentials, service, region string, c clock.Clock, next http.RoundTripper) http.RoundTripper {
	return newSigning(credentials, service, region, c, next)
}
