// sarama: logins with a token as plain SCRAM, the topics, and records in a group. It has no calls about tokens.
package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"kafka-dt/clients/exchange"
)

func main() {
	exchange.Run(map[string]exchange.Action{"topics": topics, "records": records})
}

// exchangeOfScram is what sarama asks of a SCRAM library.
type exchangeOfScram struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (x *exchangeOfScram) Begin(user, password, authorizationID string) error {
	client, err := x.hash.NewClient(user, password, authorizationID)
	if err == nil {
		x.ClientConversation = client.NewConversation()
	}
	return err
}

func configuration(settings exchange.Settings) *sarama.Config {
	config := sarama.NewConfig()
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(settings.Mechanism)
	config.Net.SASL.User = settings.User
	config.Net.SASL.Password = settings.Password
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if settings.Mechanism == sarama.SASLTypeSCRAMSHA512 {
			return &exchangeOfScram{hash: scram.SHA512}
		}
		return &exchangeOfScram{hash: scram.SHA256}
	}
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	return config
}

func topics(_ context.Context, settings exchange.Settings) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{settings.Servers}, configuration(settings))
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	found, err := admin.ListTopics()
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	return names, err
}

func records(ctx context.Context, settings exchange.Settings) (any, error) {
	servers, config := []string{settings.Servers}, configuration(settings)
	producer, err := sarama.NewSyncProducer(servers, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var sent []*sarama.ProducerMessage
	for _, each := range settings.Records {
		sent = append(sent, &sarama.ProducerMessage{
			Topic: settings.Topic, Key: sarama.StringEncoder(each[0]), Value: sarama.StringEncoder(each[1]),
		})
	}
	if err := producer.SendMessages(sent); err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroup(servers, settings.Group, config)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	member := reader{arrived: make(chan *sarama.ConsumerMessage)}
	ended := make(chan error, 1)
	go func() { ended <- group.Consume(ctx, []string{settings.Topic}, member) }()
	found := []exchange.Record{}
	for len(found) < len(sent) {
		select {
		case each := <-member.arrived:
			found = append(found, exchange.Record{each.Partition, string(each.Key), string(each.Value)})
		case err := <-ended:
			return nil, errors.Join(errors.New("the group's session ended"), err)
		}
	}
	return found, nil
}

// reader hands over the records of all partitions that its group assigns to it.
type reader struct{ arrived chan *sarama.ConsumerMessage }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
			select {
			case r.arrived <- message:
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}
