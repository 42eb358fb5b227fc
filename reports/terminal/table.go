package terminal

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// cell is the text of a cell, already harmless, and how its first line is shown.
type cell struct {
	text  string
	style style
}

// grid is a table whose first column names the rows and whose others are the providers.
type grid struct {
	corner string
	heads  []string
	rows   []gridRow
}

type gridRow struct {
	name  string
	cells []cell
}

const (
	leastColumn = 14 // columns of a provider at least; where they do not fit beside each other the table folds
	leastName   = 20 // columns of the rows' names that are always there for them
	mostName    = 40 // and at most
	mostLines   = 3  // lines of a cell
	gutter      = 3  // a separator with a space on each side
)

// print writes the table. Where the providers do not fit beside each other it folds: one table below the other, each with the rows' names.
func (p *printer) grid(g grid) error {
	name := width(g.corner)
	for _, row := range g.rows {
		name = max(name, width(row.name))
	}
	name = min(name, mostName, max(leastName, p.width/3))
	room := p.width - name - 2 // a space on each side of the name
	perTable := max(1, room/(leastColumn+gutter))
	for first := 0; first < len(g.heads); first += perTable {
		last := min(first+perTable, len(g.heads))
		column := max(leastColumn, room/(last-first)-gutter)
		if err := p.table(g, first, last, name, column); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) table(g grid, first, last, name, column int) error {
	// Cells are escaped, wrapped and measured here; the library only aligns. It would otherwise rewrite headers, pass control characters through and take widths from the environment.
	config := tablewriter.Config{}
	for _, section := range []*tw.CellConfig{&config.Header, &config.Row} {
		section.Alignment.Global = tw.AlignLeft
		section.Formatting.AutoWrap = tw.WrapNone
	}
	var drawn bytes.Buffer
	table := tablewriter.NewTable(&drawn,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{Separators: tw.Separators{BetweenRows: tw.Off, BetweenColumns: tw.On}},
		})),
		tablewriter.WithConfig(config),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithTrimSpace(tw.Off),
	)
	head := []string{g.corner}
	for _, h := range g.heads[first:last] {
		head = append(head, strings.Join(wrap(h, column, mostLines), "\n"))
	}
	table.Header(head)
	for _, row := range g.rows {
		line := []string{strings.Join(wrap(row.name, name, mostLines), "\n")}
		for _, c := range row.cells[first:last] {
			lines := wrap(c.text, column, mostLines)
			lines[0] = p.paintWord(c.style, lines[0])
			line = append(line, strings.Join(lines, "\n"))
		}
		if err := table.Append(line); err != nil {
			return fmt.Errorf("adding a row: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("drawing the table: %w", err)
	}
	for line := range strings.Lines(drawn.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
	p.line("")
	return nil
}

// paintWord colours the first word.
func (p *printer) paintWord(s style, text string) string {
	word, rest, more := strings.Cut(text, " ")
	if more {
		rest = " " + rest
	}
	return p.paint(s, word) + rest
}
