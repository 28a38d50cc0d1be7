// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"github.com/samber/lo"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// The pictures of the document, in its folder.
const (
	wayPicture  = "benchmarks-way.svg"
	costPicture = "benchmarks-cost.svg"
)

// party is who does a step.
type party struct {
	name  string
	color color.Color
}

var (
	karpenterParty  = party{"Karpenter", color.RGBA{R: 0x4c, G: 0x78, B: 0xa8, A: 0xff}}
	ownParty        = party{"this operator", color.RGBA{R: 0xe4, G: 0x57, B: 0x56, A: 0xff}}
	clusterAPIParty = party{"Cluster API", color.RGBA{R: 0xf5, G: 0x85, B: 0x18, A: 0xff}}
	bootParty       = party{"the machine boots", color.RGBA{R: 0xba, G: 0xb0, B: 0xac, A: 0xff}}
	kubernetesParty = party{"Kubernetes", color.RGBA{R: 0x54, G: 0xa2, B: 0x4b, A: 0xff}}
)

// wayOfOne are the steps of one claim without gaps, with who does them.
var wayOfOne = []struct {
	name string
	by   party
}{
	{podToClaim, karpenterParty},
	{claimToReplicas, ownParty},
	{replicasToMachine, clusterAPIParty},
	{machineToNode, bootParty},
	{nodeToRegistered, karpenterParty},
	{registeredToFree, clusterAPIParty},
	{freeToBound, kubernetesParty},
	{boundToRunning, kubernetesParty},
}

// drawPictures draws the pictures that the results suffice for into a folder.
func drawPictures(folder string, r *report) error {
	return errors.Join(
		drawWay(filepath.Join(folder, wayPicture), r),
		drawCost(filepath.Join(folder, costPicture), r),
	)
}

// drawWay draws how long each step of one claim takes if claims come one after the other.
func drawWay(file string, r *report) error {
	runs := r.results[paced][operator.name]
	if len(runs) == 0 {
		return nil
	}
	p := newPlot("One Pod every 2 s: from the Pod to where it runs, medians", "seconds", "")
	var offsets plotter.Values
	at, names := 0.0, []string{}
	lengths := map[party]plotter.Values{}
	for i, s := range wayOfOne {
		known := lo.FilterMap(runs, func(m result, _ int) (distribution, bool) { return m.step(s.name) })
		length := max(0, medianOf(known, p50))
		offsets, names = append(offsets, at), append(names, fmt.Sprintf("%s  %.2f s", s.name, length))
		if lengths[s.by] == nil {
			lengths[s.by] = make(plotter.Values, len(wayOfOne))
		}
		lengths[s.by][i], at = length, at+length
	}
	// The first step is at the top.
	slices.Reverse(offsets)
	slices.Reverse(names)
	before, err := bars(offsets, color.Transparent)
	if err != nil {
		return err
	}
	p.Add(before)
	for _, by := range []party{karpenterParty, ownParty, clusterAPIParty, bootParty, kubernetesParty} {
		slices.Reverse(lengths[by])
		of, err := bars(lengths[by], by.color)
		if err != nil {
			return err
		}
		of.StackOn(before)
		p.Add(of)
		p.Legend.Add(by.name, of)
	}
	p.NominalY(names...)
	return save(p, file, 4*vg.Inch)
}

func bars(values plotter.Values, fill color.Color) (*plotter.BarChart, error) {
	chart, err := plotter.NewBarChart(values, vg.Points(16))
	if err != nil {
		return nil, err
	}
	chart.Horizontal, chart.Color, chart.LineStyle.Width = true, fill, 0
	return chart, nil
}

// drawCost draws what a claim costs the process in which Karpenter runs, against the number of Pods that come at once.
func drawCost(file string, r *report) error {
	p := newPlot("CPU of the process per Node, created and deleted", "Pods at once", "milliseconds")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	drawn := false
	for _, line := range []struct {
		v  variant
		by party
	}{{kwok, party{"Karpenter with kwok", karpenterParty.color}}, {operator, ownParty}} {
		var points plotter.XYs
		for _, of := range r.sizes {
			if cpu, measured := r.median(of, line.v.name, (*result).process); measured && of == at(of.n) && of.n > 1 {
				points = append(points, plotter.XY{X: float64(of.n), Y: 1000 * cpu})
			}
		}
		if len(points) < 2 {
			continue
		}
		drawn = true
		lines, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		lines.Color, dots.Color, lines.Width = line.by.color, line.by.color, vg.Points(2)
		p.Add(lines, dots)
		p.Legend.Add(line.by.name, lines, dots)
	}
	if !drawn {
		return nil
	}
	p.Y.Min = 0
	return save(p, file, 3*vg.Inch)
}

func newPlot(title, x, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top = true
	return p
}

// save writes a picture. Browsers lack the font whose widths were used.
func save(p *plot.Plot, file string, height vg.Length) error {
	drawn, err := p.WriterTo(8*vg.Inch, height, "svg")
	if err != nil {
		return fmt.Errorf("drawing %s: %w", file, err)
	}
	var svg bytes.Buffer
	if _, err := drawn.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(file, bytes.ReplaceAll(svg.Bytes(), []byte("Liberation Sans"), []byte("sans-serif")), 0o644)
}
