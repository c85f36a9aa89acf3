// A classifier: lists the models, then predicts one row, with what is known and what is not.
package main

import (
	"fmt"
	"strings"

	"quercus-examples/connection"
	quercus "quercus-examples/generated/quercus/v1"
)

func main() {
	channel, ctx, end := connection.Open()
	defer end()

	listed, err := quercus.NewModelServiceClient(channel).ListModels(ctx, &quercus.ListModelsRequest{})
	connection.Check(err)
	for _, each := range listed.Models {
		specification := each.Specification
		fmt.Printf("%s (%s): %s\n", each.Name, specification.Learner.Name, strings.Join(specification.Classes, ", "))
	}

	row := &quercus.NamedRow{Values: map[string]*quercus.NamedValue{
		"alcohol": {Kind: &quercus.NamedValue_Number{Number: 13.5}},
		"tint":    {Kind: &quercus.NamedValue_Nominal{Nominal: "dark"}},
	}}
	found, err := quercus.NewClassifyServiceClient(channel).Classify(ctx, &quercus.ClassifyRequest{
		Model: connection.Model,
		Rows:  &quercus.Rows{Kind: &quercus.Rows_Named{Named: &quercus.NamedRows{Rows: []*quercus.NamedRow{row}}}},
	})
	connection.Check(err)
	fmt.Printf("%s, by tree version %d\n", found.Classes[found.ClassIndices[0]], found.TreeVersion)
	for k, name := range found.Classes {
		fmt.Printf("%s: between %.3f and %.3f\n", name, found.Belief[k], found.Plausibility[k])
	}
}
