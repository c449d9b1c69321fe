package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

// Prints KEY<TAB>VALUE for every key that it finds.
func main() {
	var servers []string
	for _, server := range strings.Fields(os.Args[1]) {
		part := strings.Split(server, "|")
		servers = append(servers, part[0]+":"+part[1])
	}
	client := memcache.New(servers...)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		item, err := client.Get(lines.Text())
		if err == memcache.ErrCacheMiss {
			continue
		}
		if err != nil {
			log.Fatal(lines.Text(), ": ", err)
		}
		fmt.Printf("%s\t%s\n", item.Key, item.Value)
	}
}
