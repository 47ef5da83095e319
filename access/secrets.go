package access

import (
	"context"

	"agentrun.dev/api"
)

// eachSecret calls f for each secret, without its values, in order of names.
func (k *Keys) eachSecret(ctx context.Context, after string, f func(*api.Secret) error) error {
	return nil
}
