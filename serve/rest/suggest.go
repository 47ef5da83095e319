package rest

import (
	"context"
	"errors"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
)

// suggest adds the name of the most similar bucket to the error of one that is missing.
func (s *server) suggest(ctx context.Context, name string, err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || len(name) > 63 {
		return err
	}
	best, least := "", 1+len(name)/3
	count := 0
	if s.store.List(ctx, func(i *bucket.Info) error {
		if count++; count > 10_000 {
			return context.Canceled // a hint isn't worth more
		}
		if d := distance(name, i.Name, least); d < least || d == least && best == "" {
			best, least = i.Name, d
		}
		return nil
	}) != nil {
		return err
	}
	if best == "" {
		return e.WithHint("list the buckets with 'agentrun buckets list'")
	}
	return e.WithHint("did you mean '" + best + "'?")
}

// distance returns how many single-character changes lead from a to b, or more than limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
