#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c=PTHREAD_COND_INITIALIZER;
static long total; static int turn;
static __thread long mine;
static void*f(void*a){long id=(long)a; for(int i=0;i<1500;i++){ volatile double x=0; for(int k=0;k<20000;k++) x+=k;
 pthread_mutex_lock(&m); while(turn!=id) pthread_cond_wait(&c,&m); total+=id; mine+=id; turn=(turn+1)%4; if(id==0&&i%100==0) usleep(100); pthread_cond_broadcast(&c); pthread_mutex_unlock(&m);} return (void*)(mine);}
int main(){pthread_t t[4];for(long i=0;i<4;i++)pthread_create(t+i,0,f,(void*)i);long s=0;for(int i=0;i<4;i++){void*r;pthread_join(t[i],&r);s+=(long)r;}printf("%ld %ld\n",total,s);return 0;}
