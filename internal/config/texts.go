package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quotabroker/wire"
)

// The parsers below read text that must have a certain shape; like those of the
// units, they say what would be right.

// parseText takes any text.
func parseText(text string) (string, error) { return text, nil }

// formatText writes text as it is.
func formatText(text string) string { return text }

// parsePath takes the path of a file; whether it is there is its user's affair.
func parsePath(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("name a file, or leave the key out")
	}
	return text, nil
}

// parseName takes what may be one token of a subject.
func parseName(text string) (string, error) {
	if !wire.ValidName(text) {
		return "", errors.New("a name has 1 to 32 of A-Z, a-z, 0-9, _ and -")
	}
	return text, nil
}

// parseEnvName takes the name of an environment variable.
func parseEnvName(text string) (string, error) {
	if !envName.MatchString(text) {
		return "", errors.New("name an environment variable, like EVAL_PASSWORD")
	}
	return text, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// parseNkey takes the public half of a user's nkey, and nothing that might be
// the secret half.
func parseNkey(text string) (string, error) {
	if !publicUserKey.MatchString(text) {
		return "", errors.New("an nkey here is the public key of a user: 56 characters that begin with U")
	}
	return text, nil
}

var publicUserKey = regexp.MustCompile(`^U[A-Z2-7]{55}$`)

// parseChoice takes one of a few words.
func parseChoice(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New(oneOf(text, words))
		}
		return text, nil
	}
}

// parseAddress takes what to listen on: an address or name, and a port; port 0
// is any free one.
func parseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " \t\n/@") {
		return "", errors.New("an address is a host and a port, like 127.0.0.1:4222")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", errors.New("an address ends in a port from 0 (any free one) to 65535, like 127.0.0.1:4222")
	}
	return text, nil
}

// parseServers takes the address of a NATS server, or several with commas. A
// password in it would end up in logs and process lists, so there may be none.
func parseServers(text string) (string, error) {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return "", errors.New("an address of a NATS server reads nats://host:4222; nats, tls, ws and wss are possible, several with commas between them")
		}
		if u.User != nil || strings.Contains(u.Host, "@") {
			return "", errors.New("an address must not carry credentials; put them in a file and name it under creds or nkey_file")
		}
	}
	return text, nil
}

// parseModel takes the name of a model, or the beginning of one with a * after it.
func parseModel(text string) (string, error) {
	switch star := strings.Index(text, "*"); {
	case text == "":
		return "", errors.New("name a model, like gpt-5, or the beginning of its name, like gpt-5*")
	case star >= 0 && star != len(text)-1:
		return "", errors.New("a * may stand only at the end, like gpt-5*")
	case len(text) > wire.MaxTextBytes:
		return "", fmt.Errorf("a model's name has at most %d bytes", wire.MaxTextBytes)
	}
	return text, nil
}
