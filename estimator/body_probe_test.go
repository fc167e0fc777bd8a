package estimator
import ("testing";"strings";"encoding/json")
func BenchmarkBody(b *testing.B){ Warm(); est:=newEstimator(b,nil)
 for name,body:=range map[string]string{
  "strings":`{"model":"text-embedding-3-small","input":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 1<<18), ",") + `]}`,
  "parts":`{"model":"gpt-4o","messages":[{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"x"},`, 1<<20/13), ",") + `]}]}`,
  "tools":`{"model":"gpt-4o","input":"a","tools":[` + strings.TrimSuffix(strings.Repeat(`{"a":[1]},`, 1<<20/10), ",") + `]}`,
 }{ b.Run(name,func(b *testing.B){ b.ReportAllocs(); for b.Loop(){ if _,err:=est.Estimate(Input{Body:json.RawMessage(body)});err!=nil{panic(err)}}})}
}
