package mockprovider

import "testing"

func TestProfiles(t *testing.T) {
	chat := Ask{API: Chat, Messages: 2, TextChars: 101, InputTokens: 40, MaxOutputTokens: 500, ModelMaxTokens: 16_384}
	open := chat
	open.MaxOutputTokens = 0
	response := chat
	response.API = Responses
	embedding := Ask{API: Embeddings, Messages: 1, TextChars: 101, InputTokens: 25, ModelMaxTokens: 16_384}
	for _, tt := range []struct {
		profile                         string
		chat, open, response, embedding int64
	}{
		{"generic", 540, 16_424, 540, 25},
		{"openai", 29, 29, 59, 25},
		{"openai-sum", 528, 44, 528, 25},
		{"openai-max", 500, 28, 500, 25},
	} {
		p, err := ProfileNamed(tt.profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			ask  Ask
			want int64
		}{{"chat", chat, tt.chat}, {"chat without a limit", open, tt.open}, {"response", response, tt.response}, {"embedding", embedding, tt.embedding}} {
			if got := p.Admission(c.ask); got != c.want {
				t.Errorf("%s, %s: %d, want %d", tt.profile, c.name, got, c.want)
			}
		}
	}
	if _, err := ProfileNamed("azure"); err == nil || err.Error() != `mockprovider: no profile "azure"; there are generic, openai, openai-sum, openai-max` {
		t.Errorf("an unknown name: %v", err)
	}
}
