package emulator

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"
)

// messageStream writes the events of one stream.
type messageStream struct {
	frames
	r     *reply
	req   anthropicRequest
	model string
	noise uint64
	index int           // of the block that is being written
	rest  time.Duration // before the end
}

var noCache = []string{"no-cache"}

// stream writes a reply as server-sent events.
func (a *anthropic) stream(ctx context.Context, w http.ResponseWriter, r *reply, q *query, req anthropicRequest) {
	out := buffers.Get().(*bytes.Buffer)
	out.Reset()
	defer release(out)
	out.Grow(flushAt + 4<<10)
	h := w.Header()
	h["Content-Type"] = typeStream
	h["Cache-Control"] = noCache
	h["Transfer-Encoding"] = chunked
	s := &messageStream{frames: frames{e: a.engine, ctx: ctx, w: w, cut: r.cut, pause: r.delay, buf: out.AvailableBuffer()}, r: r, req: req, model: anthropicModel(q.model), noise: binary.BigEndian.Uint64(r.seed[:])}
	if a.realTime {
		all := time.Duration(s.total())
		s.pause += (r.latency - r.ttft) / all
		s.rest = (r.latency - r.ttft) % all
	}
	if !a.wait(ctx, r.ttft) {
		return
	}
	s.write()
}

func (s *messageStream) thinks() bool { return s.r.reasoning != "" && s.req.thinks }

// total is the number of events of the whole stream but the last.
func (s *messageStream) total() int {
	n := 3 + s.r.pieces.frames() + 3*len(s.r.calls) // start, ping, delta; each call has a start, an empty piece and a stop
	if shown(s.r) != "" {
		n += 2
	}
	if s.thinks() {
		n += 3 + len(cut(s.req.shownThinking(s.r), s.r.fragment))
	}
	return n
}

func (s *messageStream) write() {
	if s.cut != nil && s.cut.After.Count == 0 {
		s.cutShort()
		return
	}
	s.start()
	s.blocks()
	s.delta()
	if s.over {
		return
	}
	if s.cut != nil {
		s.cutShort()
		return
	}
	if s.e.wait(s.ctx, s.rest) {
		s.buf = append(s.buf, "event: message_stop\ndata: {\"type\":\"message_stop\""...)
		s.pad()
		s.buf = append(s.buf, "}\n\n"...)
		s.send()
	}
}

// pad appends spaces: the vendor pads events so that their lengths tell nothing about the tokens.
func (s *messageStream) pad() {
	const spaces = "               "
	s.noise = s.noise*6364136223846793005 + 1442695040888963407
	s.buf = append(s.buf, spaces[:int(s.noise>>33)%(len(spaces)+1)]...)
}

// open begins an event, close ends it.
func (s *messageStream) open(kind string) {
	s.buf = append(s.buf, "event: "...)
	s.buf = append(s.buf, kind...)
	s.buf = append(s.buf, "\ndata: {\"type\":\""...)
	s.buf = append(s.buf, kind...)
	s.buf = append(s.buf, '"')
}

func (s *messageStream) close() {
	s.pad()
	s.buf = append(s.buf, "}\n\n"...)
	s.end()
}

func (s *messageStream) start() {
	s.open("message_start")
	s.buf = append(s.buf, `,"message":{"model":`...)
	s.buf = appendQuoted(s.buf, s.model)
	s.buf = append(s.buf, `,"id":"`...)
	s.buf = appendMessageID(s.buf, s.r.seed)
	s.buf = append(s.buf, `","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{`...)
	s.buf = appendUsage(s.buf, &s.r.usage, min(s.r.usage.output, 1))
	s.buf = append(s.buf, "}}"...)
	s.close()
}

// ping follows the start of the first block.
func (s *messageStream) ping() {
	if s.index == 0 && !s.over {
		s.buf = append(s.buf, "event: ping\ndata: {\"type\": \"ping\"}\n\n"...)
		s.end()
	}
}

// openBlock begins an event of a block.
func (s *messageStream) openBlock(kind string) {
	s.open(kind)
	s.buf = append(s.buf, `,"index":`...)
	s.buf = strconv.AppendInt(s.buf, int64(s.index), 10)
}

// startBlock writes the start of a block, whose JSON it is given.
func (s *messageStream) startBlock(block []byte) {
	if s.over {
		return
	}
	s.openBlock("content_block_start")
	s.buf = append(s.buf, `,"content_block":`...)
	s.buf = append(s.buf, block...)
	s.close()
	s.ping()
}

// piece writes a piece of a block.
func (s *messageStream) piece(kind, field string, quoted []byte) {
	if s.over {
		return
	}
	s.openBlock("content_block_delta")
	s.buf = append(s.buf, `,"delta":{"type":"`...)
	s.buf = append(s.buf, kind...)
	s.buf = append(s.buf, `","`...)
	s.buf = append(s.buf, field...)
	s.buf = append(s.buf, `":`...)
	s.buf = append(s.buf, quoted...)
	s.buf = append(s.buf, '}')
	s.close()
}

func (s *messageStream) stopBlock() {
	if s.over {
		return
	}
	s.openBlock("content_block_stop")
	s.close()
	s.index++
}

func (s *messageStream) blocks() {
	if s.thinks() {
		s.startBlock([]byte(`{"type":"thinking","thinking":"","signature":""}`))
		for _, p := range cut(s.req.shownThinking(s.r), s.r.fragment) {
			s.piece("thinking_delta", "thinking", p.quoted)
		}
		s.piece("signature_delta", "signature", appendQuoted(nil, signature(s.r.reasoning)))
		s.stopBlock()
	}
	if shown(s.r) != "" {
		s.startBlock([]byte(`{"type":"text","text":""}`))
		for _, p := range s.r.pieces.text {
			s.piece("text_delta", "text", p.quoted)
		}
		s.stopBlock()
	}
	for i, c := range s.r.calls {
		block := append([]byte(nil), `{"type":"tool_use","id":`...)
		block = s.r.appendToolUseID(block, i)
		block = append(block, `,"name":`...)
		block = appendQuoted(block, c.name)
		s.startBlock(append(block, `,"input":{},"caller":{"type":"direct"}}`...))
		s.piece("input_json_delta", "partial_json", []byte(`""`))
		for _, p := range s.r.pieces.calls[i] {
			s.piece("input_json_delta", "partial_json", p.quoted)
		}
		s.stopBlock()
	}
}

func (s *messageStream) delta() {
	if s.over {
		return
	}
	s.open("message_delta")
	s.buf = append(s.buf, `,"delta":{"stop_reason":"`...)
	s.buf = append(s.buf, anthropicStop(s.r)...)
	s.buf = append(s.buf, `","stop_sequence":null,"stop_details":null},"usage":{`...)
	s.buf = appendInput(s.buf, &s.r.usage)
	s.buf = append(s.buf, `,"output_tokens":`...)
	s.buf = strconv.AppendInt(s.buf, int64(s.r.usage.output), 10)
	s.buf = appendThinkingTokens(s.buf, &s.r.usage)
	s.buf = append(s.buf, '}')
	s.close()
}
