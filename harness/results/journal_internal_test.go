package results

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
)

// disk is a file of limited size. A write that does not fit is cut, with or without an error.
type disk struct {
	bytes.Buffer
	room   int
	err    error
	syncs  int
	closed bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.Len()+len(p) > d.room {
		n, _ := d.Buffer.Write(p[:max(0, d.room-d.Len())])
		return n, d.err
	}
	return d.Buffer.Write(p)
}

func (d *disk) Sync() error  { d.syncs++; return nil }
func (d *disk) Close() error { d.closed = true; return nil }

func minimal(index int) eval.Result {
	return eval.Result{V: 1, Item: "a", Index: index, Provider: "p", Repeat: 1, Status: eval.Pass}
}

var _ = Describe("a journal on a full disk", func() {
	DescribeTable("keeps what was finished readable", func(err error) {
		d := &disk{room: 2_000, err: err}
		j := newJournal("journal.jsonl", d, clock.NewVirtual(time.Time{}))
		written := 0
		var failed error
		for i := 1; failed == nil; i++ {
			Expect(i).To(BeNumerically("<", 100))
			if failed = j.Append(minimal(i), nil, 0); failed == nil {
				written++
			}
		}
		Expect(written).To(BeNumerically(">", 0))
		Expect(failure.CodeOf(failed)).To(Equal(failure.Internal))
		Expect(failure.Hints(failed)).To(ContainElement(ContainSubstring("--resume")))
		// Room that appears later does not put a line behind the cut one.
		d.room = math.MaxInt
		Expect(j.Append(minimal(99), nil, 0)).To(MatchError(failed))
		Expect(j.Close()).To(MatchError(failed))
		Expect(d.closed).To(BeTrue())
		read := 0
		_, scanErr := scanJournal("journal.jsonl", &d.Buffer, func(int64, []byte, journalLine) error { read++; return nil })
		Expect(scanErr).NotTo(HaveOccurred())
		Expect(read).To(Equal(written))
	},
		Entry("the system says so", errors.New("no space left on device")),
		Entry("the write is short", nil),
	)
})

var _ = Describe("a journal on the disk", func() {
	It("is forced there at most once a second, and at the end", func() {
		d := &disk{room: math.MaxInt}
		c := clock.NewVirtual(time.Unix(0, 0))
		j := newJournal("journal.jsonl", d, c)
		for i := 1; i <= 300; i++ {
			c.AdvanceTo(time.Unix(0, int64(i)*int64(10*time.Millisecond)))
			Expect(j.Append(minimal(i), nil, 0)).To(Succeed())
		}
		Expect(d.syncs).To(Equal(3))
		Expect(j.Append(minimal(301), nil, 0)).To(Succeed())
		Expect(j.Close()).To(Succeed())
		Expect(d.syncs).To(Equal(4))
		Expect(d.closed).To(BeTrue())
	})
})

var _ = DescribeTable("lines that the journal does not take", func(change func(*eval.Result), trace string, column int, message string) {
	line := minimal(1)
	change(&line)
	j := newJournal("journal.jsonl", &disk{room: math.MaxInt}, clock.NewVirtual(time.Time{}))
	err := j.Append(line, []byte(trace), column)
	Expect(err).To(MatchError(ContainSubstring(message)))
	Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	Expect(j.Append(minimal(1), nil, 0)).To(Succeed(), "one bad line does not end the journal")
},
	Entry(nil, func(r *eval.Result) { r.Index = 0 }, "", 0, "out of bounds"),
	Entry(nil, func(r *eval.Result) { r.Repeat = MaxRepeat + 1 }, "", 0, "out of bounds"),
	Entry(nil, func(*eval.Result) {}, "", -1, "out of bounds"),
	Entry(nil, func(*eval.Result) {}, "", MaxColumns, "out of bounds"),
	Entry(nil, func(*eval.Result) {}, "{\n", 0, "the trace is no JSON value"),
)

var _ = It("puts a trace of several lines on one", func() {
	data, err := appendJournalLine(nil, &eval.Result{V: 1, Index: 1, Repeat: 1}, []byte("{\n \"v\": 1\n}"), 0)
	Expect(err).NotTo(HaveOccurred())
	parts, err := parseJournalLine(bytes.TrimSuffix(data, []byte("\n")))
	Expect(err).NotTo(HaveOccurred())
	Expect(string(parts.trace)).To(Equal(`{"v":1}`))
})

var _ = Describe("a key", func() {
	It("sorts by index, column, repeat, up to its bounds", func() {
		keys := []uint64{key(1, 0, 1), key(1, 0, MaxRepeat), key(1, 1, 1), key(1, MaxColumns-1, MaxRepeat), key(2, 0, 1), key(MaxIndex, MaxColumns-1, MaxRepeat)}
		for i := 1; i < len(keys); i++ {
			Expect(keys[i]).To(BeNumerically(">", keys[i-1]))
		}
		Expect(keyIndex(keys[5])).To(Equal(MaxIndex))
		Expect(keyColumn(keys[5])).To(Equal(MaxColumns - 1))
	})
})

var _ = It("finds lines longer than what is read at once, in any order", func() {
	var text bytes.Buffer
	lengths := []int{10, readMost * 3, 5, readLeast, readLeast - 1, 0, readMost * 9, 1}
	var offsets []int64
	for _, n := range lengths {
		offsets = append(offsets, int64(text.Len()))
		text.Write(bytes.Repeat([]byte("x"), n))
		text.WriteByte('\n')
	}
	reader := bytes.NewReader(text.Bytes())
	var w window
	for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 7, 7, 0, 6, 2, 1, 5} {
		line, err := w.line(reader, offsets[i])
		Expect(err).NotTo(HaveOccurred())
		Expect(line).To(HaveLen(lengths[i]))
	}
	_, err := w.line(reader, int64(text.Len()))
	Expect(err).To(MatchError(io.EOF))
})
