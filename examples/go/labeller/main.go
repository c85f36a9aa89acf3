// A labelling client: leases queries one by one, and answers them as a person would.
package main

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"quercus-examples/connection"
	quercus "quercus-examples/generated/quercus/v1"
)

func main() {
	channel, ctx, end := connection.Open()
	defer end()
	queries := quercus.NewQueryServiceClient(channel)

	for answered := 0; answered < 3; answered++ {
		lease, err := queries.LeaseQueries(ctx, &quercus.LeaseQueriesRequest{
			Model:      connection.Model,
			Labeller:   "ann",
			MaxQueries: 1,
			Wait:       &durationpb.Duration{Seconds: 30},
		})
		connection.Check(err)
		if len(lease.Queries) == 0 {
			break // nothing to ask, or the budget is spent
		}
		query := lease.Queries[0]
		class := "white"
		if query.Values.Values["tint"].GetNominal() == "dark" {
			class = "red"
		}
		_, err = queries.AnswerQuery(ctx, &quercus.AnswerQueryRequest{
			Name:        query.Name,
			LeaseToken:  query.LeaseToken,
			Label:       &quercus.Label{Kind: &quercus.Label_ClassName{ClassName: class}},
			Reliability: proto.Float64(0.9), // the labeller may be wrong: the answer counts for less
		})
		connection.Check(err)
		fmt.Printf("%s: %s\n", query.Instance, class)
	}
}
