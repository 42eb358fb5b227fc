package eventstream_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/eventstream"
)

func TestEventstream(t *testing.T) { suite.Run(t, "eventstream") }

// sample is a frame with headers of several types, written by the vendor's own encoder.
func sample() string {
	var b bytes.Buffer
	message := sdk.Message{Payload: []byte(`{"a":"é"}`)}
	message.Headers.Set("flag", sdk.BoolValue(true))
	message.Headers.Set("number", sdk.Int32Value(-5))
	message.Headers.Set("bytes", sdk.BytesValue("xyz"))
	message.Headers.Set(":event-type", sdk.StringValue("metadata"))
	if err := sdk.NewEncoder().Encode(&b, message); err != nil {
		panic(err)
	}
	return b.String()
}

var _ = Describe("a frame", func() {
	It("is read as the vendor writes it, and written as the vendor reads it", func() {
		f, rest, ok := eventstream.Cut(sample() + "more")
		Expect(ok).To(BeTrue())
		Expect(rest).To(Equal("more"))
		Expect(f.Payload).To(Equal(`{"a":"é"}`))
		Expect(f.Get(":event-type")).To(Equal("metadata"))
		Expect(f.Get("flag")).To(BeEmpty())
		Expect(f.Get("none")).To(BeEmpty())
		Expect(string(eventstream.Append(nil, f))).To(Equal(sample()))

		mine := eventstream.Append([]byte("before"), eventstream.Frame{Head: string(eventstream.AppendHeader(nil, ":message-type", "event")), Payload: "{}"})
		message, err := sdk.NewDecoder().Decode(bytes.NewReader(mine[len("before"):]), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(message.Payload)).To(Equal("{}"))
		Expect(message.Headers.Get(":message-type").String()).To(Equal("event"))
	})

	It("is the one of the format's description", func() {
		// A frame without headers and without a payload.
		Expect(hex.EncodeToString(eventstream.Append(nil, eventstream.Frame{}))).To(Equal("000000100000000005c248eb7d98c8ff"))
	})

	It("is none where a byte is another or is missing", func() {
		whole := sample()
		for i := range len(whole) {
			_, _, ok := eventstream.Cut(whole[:i])
			Expect(ok).To(BeFalse(), "cut at %d", i)
			other := whole[:i] + string(whole[i]^1) + whole[i+1:]
			_, _, ok = eventstream.Cut(other)
			Expect(ok).To(BeFalse(), "another byte at %d", i)
		}
		_, _, ok := eventstream.Cut(strings.Repeat("\xff", 64))
		Expect(ok).To(BeFalse())
	})
})

func FuzzCut(f *testing.F) {
	f.Add(sample())
	f.Add(string(eventstream.Append(nil, eventstream.Frame{Head: "\x05short"})))
	f.Fuzz(func(t *testing.T, body string) {
		frame, rest, ok := eventstream.Cut(body)
		if !ok {
			if rest != body {
				t.Fatal("what is no frame must be left as it is")
			}
			return
		}
		frame.Get(":event-type")
		if string(eventstream.Append(nil, frame))+rest != body {
			t.Fatal("a frame is written another way than it was read")
		}
	})
}
