// Package exchange is how a test asks a client program: the action is its argument, the settings are JSON on its
// standard input, and the answer is JSON on its standard output. A failure is a line on standard error.
package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Within is how long an action may take.
const Within = 30 * time.Second

// Settings say where to log in, as whom, and what to send.
type Settings struct {
	Servers   string      `json:"servers"`
	Mechanism string      `json:"mechanism"`
	User      string      `json:"user"`
	Password  string      `json:"password"`
	TokenAuth bool        `json:"tokenauth"`
	Topic     string      `json:"topic"`
	Group     string      `json:"group"`
	Records   [][2]string `json:"records"`
}

// Record is one that was read: partition, key and value.
type Record [3]any

// Action is one thing that a client does; what it gives is the answer.
type Action func(context.Context, Settings) (any, error)

// Run does the action that the command line names.
func Run(actions map[string]Action) {
	if err := run(actions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(actions map[string]Action) error {
	var settings Settings
	if err := json.NewDecoder(os.Stdin).Decode(&settings); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Within)
	defer cancel()
	answer, err := actions[os.Args[1]](ctx, settings)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}
