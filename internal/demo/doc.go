// Package demo plays a night on one LLM account, with and without the broker: live
// requests, background work, and an evaluation that starts with thousands of
// fixtures. Everything is real but the provider and the clock: the prompts are
// those of HumanEval and GSM8K, the arrivals are recorded at Azure, producers speak
// to the broker over NATS and to the provider over HTTP. The provider is
// [quotabroker/internal/mockprovider], and the night passes faster than it would.
//
// The night is sped up by shortening every duration of it, the account's minute
// and the broker's windows alike. What is measured is stretched back.
package demo
