// Stores values by gomemcache, reads them back and prints each as the client has read it.
// Usage: values NAME HOST:PORT plain
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/bradfitz/gomemcache/memcache"
)

func main() {
	client := memcache.New(os.Args[2])
	values := []string{"text", "naïve ключ 😀", "", "line\r\nline\\", "\xff\x00", "0", "-5", "1.5", "{\"json\":[1]}", "\x00",
		"a b", "\t", "true", "null", strings.Repeat("x", 5000), "é", "\xc3", "[", "\"", "\u2028"}
	for number, value := range values {
		key := fmt.Sprintf("%s-%d", os.Args[1], number)
		if err := client.Set(&memcache.Item{Key: key, Value: []byte(value), Flags: uint32(number)}); err != nil {
			log.Fatal(key, ": ", err)
		}
		item, err := client.Get(key)
		if err != nil {
			log.Fatal(key, ": ", err)
		}
		var read any = string(item.Value)
		if !utf8.Valid(item.Value) {
			read = map[string]any{"@b64": item.Value}
		}
		line, _ := json.Marshal(map[string]any{"key": key, "value": read})
		fmt.Println(string(line))
	}
}
