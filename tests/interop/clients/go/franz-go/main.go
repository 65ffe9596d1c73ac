// franz-go: every call about tokens, logins with tokenauth, and records in a group.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kafka-dt/clients/exchange"
)

func main() {
	exchange.Run(map[string]exchange.Action{"tokens": tokens, "topics": topics, "records": records})
}

func mechanism(settings exchange.Settings) (sasl.Mechanism, error) {
	auth := scram.Auth{User: settings.User, Pass: settings.Password, IsToken: settings.TokenAuth}
	switch settings.Mechanism {
	case "PLAIN":
		return plain.Auth{User: settings.User, Pass: settings.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return auth.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return auth.AsSha512Mechanism(), nil
	}
	return nil, errors.New("unknown mechanism " + settings.Mechanism)
}

func connect(settings exchange.Settings, more ...kgo.Opt) (*kgo.Client, error) {
	login, err := mechanism(settings)
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(more, kgo.SeedBrokers(settings.Servers), kgo.SASL(login))...)
}

// tokens makes a token that User:bob may renew, describes it, renews it for a minute and expires it.
func tokens(ctx context.Context, settings exchange.Settings) (any, error) {
	client, err := connect(settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	bob := kadm.Principal{Type: "User", Name: "bob"}
	made, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{
		Renewers: []kadm.Principal{bob}, MaxLifetime: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	described, err := admin.DescribeDelegationTokens(ctx, made.Owner)
	if err != nil {
		return nil, err
	}
	renewers := []string{}
	for _, each := range described {
		if each.TokenID == made.TokenID {
			for _, renewer := range each.Renewers {
				renewers = append(renewers, renewer.Type+":"+renewer.Name)
			}
		}
	}
	renewed, err := admin.RenewDelegationToken(ctx, made.HMAC, time.Minute)
	if err != nil {
		return nil, err
	}
	expired, err := admin.ExpireDelegationToken(ctx, made.HMAC, -1*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"token_id":   made.TokenID,
		"hmac":       base64.StdEncoding.EncodeToString(made.HMAC),
		"owner":      made.Owner.Type + ":" + made.Owner.Name,
		"issued_ms":  made.IssueTimestamp.UnixMilli(),
		"renewers":   renewers,
		"renewed_ms": renewed.UnixMilli(),
		"expired_ms": expired.UnixMilli(),
	}, nil
}

func topics(ctx context.Context, settings exchange.Settings) (any, error) {
	client, err := connect(settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found, err := kadm.NewClient(client).ListTopics(ctx)
	return append([]string{}, found.Names()...), err
}

func records(ctx context.Context, settings exchange.Settings) (any, error) {
	client, err := connect(settings,
		kgo.ConsumeTopics(settings.Topic),
		kgo.ConsumerGroup(settings.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var sent []*kgo.Record
	for _, each := range settings.Records {
		sent = append(sent, &kgo.Record{Topic: settings.Topic, Key: []byte(each[0]), Value: []byte(each[1])})
	}
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	found := []exchange.Record{}
	for len(found) < len(sent) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(each *kgo.Record) {
			found = append(found, exchange.Record{each.Partition, string(each.Key), string(each.Value)})
		})
	}
	return found, client.CommitUncommittedOffsets(ctx)
}
