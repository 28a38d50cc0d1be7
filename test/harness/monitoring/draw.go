// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"errors"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The sizes in a picture.
const (
	columns = 2
	width   = 5 * vg.Inch
	height  = 2.4 * vg.Inch
	padding = vg.Length(12)
	small   = vg.Length(8)
	// mostNames is how many lines of a panel have a name in the picture.
	mostNames = 6
	// headroom is the share of a panel's height that the names need.
	headroom = 0.4
)

// units are the names of Grafana's units.
var units = map[string]string{"s": "seconds", "percent": "percent"}

// Draw returns a picture of what the panels of a dashboard show, in SVG.
func Draw(records []Record) ([]byte, error) {
	if len(records) == 0 {
		return nil, errors.New("there is nothing to draw")
	}
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	rows := (len(records) + columns - 1) / columns
	plots := make([][]*plot.Plot, rows)
	for row := range plots {
		plots[row] = make([]*plot.Plot, columns)
	}
	end := endOf(records)
	for i, record := range records {
		drawn, err := drawOne(record, end)
		if err != nil {
			return nil, err
		}
		plots[i/columns][i%columns] = drawn
	}
	canvas := vgsvg.New(columns*width, vg.Length(rows)*height)
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: padding, PadY: padding, PadTop: padding, PadBottom: padding, PadLeft: padding, PadRight: padding}
	areas := plot.Align(plots, tiles, draw.New(canvas))
	for row := range plots {
		for column, drawn := range plots[row] {
			if drawn != nil {
				drawn.Draw(areas[row][column])
			}
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Browsers lack the font whose widths were used.
	return bytes.ReplaceAll(svg.Bytes(), []byte("Liberation Sans"), []byte("sans-serif")), nil
}

// endOf returns the last time at which a series has a number.
func endOf(records []Record) float64 {
	end := 1.0
	for _, record := range records {
		for _, line := range record.Lines {
			end = max(end, line.Points[len(line.Points)-1].X)
		}
	}
	return end
}

// drawOne draws one panel, from the start of the run to its end.
func drawOne(record Record, end float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = record.Title, "seconds since the start", units[record.Unit]
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = small, small, small
	p.Legend.Top, p.Legend.Left = true, true
	for i, line := range record.Lines {
		drawn, err := plotter.NewLine(line.Points)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width = plotutil.Color(i), vg.Points(1.5)
		p.Add(drawn)
		if i < mostNames && line.Name != "" {
			p.Legend.Add(line.Name, drawn)
		}
	}
	p.X.Min, p.X.Max, p.Y.Min = 0, end, min(p.Y.Min, 0)
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1
	}
	p.Y.Max += headroom * (p.Y.Max - p.Y.Min)
	return p, nil
}
