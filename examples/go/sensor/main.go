// A sensor: creates the model if it is missing, and pushes rows without labels.
package main

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"quercus-examples/connection"
	quercus "quercus-examples/generated/quercus/v1"
)

func main() {
	channel, ctx, end := connection.Open()
	defer end()

	_, err := quercus.NewModelServiceClient(channel).CreateModel(ctx, &quercus.CreateModelRequest{
		ModelId: "wine",
		Specification: &quercus.Specification{
			Classes: []string{"red", "white"},
			Attributes: []*quercus.Attribute{
				{Name: "alcohol", Kind: &quercus.Attribute_Numeric{Numeric: &quercus.NumericAttribute{}}},
				{Name: "tint", Kind: &quercus.Attribute_Nominal{
					Nominal: &quercus.NominalAttribute{Values: []string{"dark", "pale"}},
				}},
			},
			Budget: proto.Uint32(5),
		},
	})
	if status.Code(err) != codes.AlreadyExists {
		connection.Check(err)
	}

	var ids []string
	var bottles []*quercus.NamedRow
	for k := 0; k < 20; k++ {
		tint := []string{"pale", "dark"}[k%2]
		ids = append(ids, fmt.Sprintf("bottle-%d", k)) // with ids the push may be repeated: nothing is stored twice
		bottles = append(bottles, &quercus.NamedRow{Values: map[string]*quercus.NamedValue{
			"alcohol": {Kind: &quercus.NamedValue_Number{Number: float64(10 + k%5)}},
			"tint":    {Kind: &quercus.NamedValue_Nominal{Nominal: tint}},
		}})
	}
	stored, err := quercus.NewInstanceServiceClient(channel).PushBatch(ctx, &quercus.PushBatchRequest{
		Model: connection.Model,
		Ids:   ids,
		Rows:  &quercus.Rows{Kind: &quercus.Rows_Named{Named: &quercus.NamedRows{Rows: bottles}}},
	})
	connection.Check(err)
	fmt.Printf("%d rows stored, %d were there already\n", stored.RowsStored, stored.RowsKnown)
}
